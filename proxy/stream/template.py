"""One text chunk comes in and how it went out; further ones that differ in their text alone follow.

Nearly all events of a stream are the same bytes around other words. Once one was read and rewritten
in full, the rest needs to be compared only: whatever is not exactly alike is left for the full way.
"""

from typing import NamedTuple

import msgspec

from proxy.stream.sse import Frame

_TEXT = b'"content"'
_PADDING = b'"obfuscation"'
"""OpenAI hides the length of words by a field of random letters after them."""
_LF = 10
_read_string = msgspec.json.Decoder(str).decode


class _Holes(NamedTuple):
    """The bytes around a text and around the padding, which may be missing."""

    before: bytes
    after: bytes
    end: bytes


class Template:
    """The bytes around the text of a stream's text chunks, as they come and as they go out."""

    __slots__ = ("_new", "_old", "_same")

    def __init__(self, old: _Holes, new: _Holes, *, same: bool) -> None:
        self._old = old
        self._new = new
        self._same = same

    def match(self, frame: Frame) -> tuple[str, bytes] | None:
        """The text of an event and its bytes for the client; None when it has to be read in full.

        Only the text is decoded, and as a whole JSON string: nothing can hide in it.
        """
        data = frame.data
        before, after, end = self._old
        if data is None or frame.event is not None or not data.startswith(before):
            return None
        if end:
            close = data.find(after, len(before))
            padding = data[close + len(after) : -len(end)]
            if close < 0 or not data.endswith(end) or not padding.isalnum():
                return None
        else:
            close = len(data) - len(after)
            padding = b""
            if close < len(before) or not data.endswith(after):
                return None
        spelled = data[len(before) : close]
        try:
            text = _read_string(b'"%b"' % spelled)
        except ValueError:
            return None
        if not text:
            return None
        if self._same:
            raw = frame.raw
            return (text, raw) if len(raw) - len(data) == 8 and raw[-2] == _LF else None
        new = self._new
        return text, b"".join(
            (b"data: ", new.before, spelled, new.after, padding, new.end, b"\n\n")
        )


def learn(data: bytes, text: str, wire: bytes) -> Template | None:
    """The template of a chunk with that text, which went out as `wire`; None without one."""
    if not wire.startswith(b"data: {") or not wire.endswith(b"}\n\n"):
        return None
    out = wire[6:-2]
    spelled = text.encode()
    old, new = _find_holes(data, spelled), _find_holes(out, spelled)
    if old is None or new is None or bool(old.end) != bool(new.end):
        return None
    return Template(old, new, same=data == out)


def _find_holes(data: bytes, spelled: bytes) -> _Holes | None:
    """Where a chunk's text stands: it follows the only key of its name, and nothing is escaped.

    Quotes inside strings are escaped, so a key that stands there once in quotes is that key.
    """
    start = _value_of(data, _TEXT)
    stop = start + len(spelled)
    if start < 0 or data[start:stop] != spelled or data[stop : stop + 1] != b'"':
        return None
    before, after = data[:start], data[stop:]
    if b"\\" in data or b"\n" in data or b"\r" in data:
        return None
    if _PADDING not in after:
        return _Holes(before, after, b"")
    at = _value_of(after, _PADDING)
    close = after.find(b'"', at)
    if at < 0 or close < 0:
        return None
    return _Holes(before, after[:at], after[close:])


def _value_of(data: bytes, key: bytes) -> int:
    """Where the string after a key begins; -1 when the key is not there exactly once."""
    at = data.find(key)
    if at < 0 or data.rfind(key) != at:
        return -1
    for colon in (b':"', b': "'):
        if data.startswith(colon, at + len(key)):
            return at + len(key) + len(colon)
    return -1
