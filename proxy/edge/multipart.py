"""A multipart body comes in, in pieces; the value of its field `model` goes out.

Whoever limits a key to some models has to read them as the upstream does. So what could be read in
two ways is refused: a second `model`, a name that is escaped, a boundary that is no clean line.
"""

import re
from dataclasses import dataclass

from proxy.edge.exchange import Exchange
from proxy.edge.watch import ClientGone
from proxy.errors import BadRequest

MAX_HEAD = 8 * 1024
"""Bytes of the headers of one part."""
MAX_VALUE = 512
_BOUNDARY = re.compile(rb'(?i)(?:^|;)\s*boundary=(?:"([^"\\]{1,70})"|([^\s;"]{1,70}))')
_DISPOSITION = re.compile(
    rb"(?i)^content-disposition:[ \t]*form-data((?:;[^\r\n]*)?)$", re.MULTILINE
)
_PARAMETER = re.compile(rb';[ \t]*([A-Za-z*0-9_-]+)=(?:"([^"\r\n]*)"|([^\s;"]+))')


def find_boundary(content_type: bytes) -> bytes | None:
    """The boundary of a multipart form; None for any other content type."""
    kind, _, parameters = content_type.partition(b";")
    if kind.strip().lower() != b"multipart/form-data":
        return None
    found = _BOUNDARY.findall(parameters)
    return found[0][0] or found[0][1] if len(found) == 1 else None


class ModelField:
    """Reads a form as it goes by; `model` is None until the whole field was seen."""

    def __init__(self, boundary: bytes) -> None:
        self._mark = b"--" + boundary
        self._rest = b"\r\n"  # the first boundary needs no line before it
        self._in_head = False
        self._value: bytearray | None = None
        self.model: str | None = None

    def feed(self, piece: bytes) -> None:
        """Read on. Raises BadRequest for a form that could mean two things."""
        self._rest += piece
        while self._read_head() if self._in_head else self._read_content():
            pass

    def _read_content(self) -> bool:
        """Up to the next boundary; false when there is none yet."""
        at = self._rest.find(self._mark)
        end = at + len(self._mark)
        if at < 0 or len(self._rest) < end + 2:
            # What might be the beginning of a line with a boundary is kept.
            keep = len(self._rest) - at + 2 if at >= 0 else len(self._mark) + 1
            self._take(self._rest[:-keep])
            self._rest = self._rest[-keep:]
            return False
        if self._rest[max(0, at - 2) : at] != b"\r\n":
            raise _unclear("a boundary within a line")
        self._take(self._rest[: at - 2])
        self._end_part()
        after = self._rest[end : end + 2]
        if after not in {b"\r\n", b"--"}:
            raise _unclear("a boundary that goes on")
        self._in_head = after == b"\r\n"
        self._rest = self._rest[end:]
        return self._in_head

    def _read_head(self) -> bool:
        head, empty, rest = self._rest.partition(b"\r\n\r\n")
        if not empty:
            if len(self._rest) > MAX_HEAD:
                raise _unclear("headers that do not end")
            return False
        self._in_head = False
        self._rest = b"\r\n" + rest
        if _name_of(head) == b"model":
            if self.model is not None:
                raise _unclear("two fields `model`")
            if b"content-transfer-encoding" in head.lower():
                raise _unclear("an encoded field `model`")
            self._value = bytearray()
        return True

    def _take(self, content: bytes) -> None:
        if self._value is None:
            return
        self._value += content
        if len(self._value) > MAX_VALUE:
            raise _unclear("a field `model` that is too long")

    def _end_part(self) -> None:
        if self._value is None:
            return
        # The line end of the head stands before the content, see _read_head.
        self.model = bytes(self._value).removeprefix(b"\r\n").decode("utf-8", "replace")
        self._value = None


@dataclass(frozen=True, slots=True)
class Held:
    """The beginning of a form, or all of it when it is `whole`."""

    field: ModelField
    body: bytes
    whole: bool


async def hold_form(exchange: Exchange, boundary: bytes, room: int, *, strict: bool) -> Held:
    """Read a form until its model is known, its end or that many bytes.

    With `strict` raises BadRequest for one that could mean two things; else its model is unknown.
    """
    field, pieces, size, more = ModelField(boundary), list[bytes](), 0, True
    while more and field.model is None and size <= room:
        message = await exchange.receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        piece = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(piece)
        pieces.append(piece)
        try:
            field.feed(piece)
        except BadRequest:
            if strict:
                raise
            break
    return Held(field, b"".join(pieces), not more)


def _name_of(head: bytes) -> bytes | None:
    """The name of a part; None when it has none."""
    lines = head.removeprefix(b"\r\n").split(b"\r\n")
    strange = any(line[:1] in {b" ", b"\t"} or b"\n" in line or b"\r" in line for line in lines)
    named = [line for line in lines if line.lower().startswith(b"content-disposition")]
    if not named and not strange:
        return None
    line = _DISPOSITION.fullmatch(named[0]) if len(named) == 1 and not strange else None
    if line is None or b"".join(_PARAMETER.split(line[1])[::4]).strip():
        raise _unclear("a part whose disposition cannot be read")
    parameters = _PARAMETER.findall(line[1])
    names: list[bytes] = [
        quoted or token for key, quoted, token in parameters if key.lower() == b"name"
    ]
    starred = any(key.lower().startswith(b"name*") for key, _, _ in parameters)
    if len(names) != 1 or starred or b"\\" in names[0]:
        raise _unclear("a part whose name cannot be read")
    return names[0]


def _unclear(what: str) -> BadRequest:
    return BadRequest(f"The form has {what}, so the model cannot be told.", param="model")
