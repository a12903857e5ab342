"""Bytes of an event stream in any chunking come in; whole events with their own bytes go out."""

import re

import msgspec

from proxy.errors import UpstreamError

DONE = b"data: [DONE]\n\n"
PING = b": ping\n"

_BOM = b"\xef\xbb\xbf"
_LF, _CR = b"\n\r"
_CHEAP = 4096
_LARGEST = 128 * 1024 * 1024

# A line end directly after a line end closes an event. After LF, a CR may still grow to CRLF, so
# it counts only once the next byte is known; after a lone CR, a CR closes at once.
_CLOSE = re.compile(rb"\n\n|\r\r|\n\r(?:\n|(?=[^\n]))")
_BLANK = re.compile(rb"\n|\r\n|\r(?=[^\n])")


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One event; `raw` joined over all frames is the stream, byte for byte.

    `raw` includes the blank line that closes the event, `data` joins its data lines by a newline
    and is None when it has none. A struct, because a frozen dataclass takes ten times as long to
    make and every event makes one.
    """

    raw: bytes
    data: bytes | None
    event: bytes | None = None


class Splitter:
    """Cuts one stream into events, in time linear in its length whatever the chunks.

    An event of more than `largest` bytes raises UpstreamError instead of filling the memory.
    """

    def __init__(self, largest: int = _LARGEST) -> None:
        self._largest = largest
        self._pending: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[Frame]:
        """The events that `chunk` completes."""
        if self._pending:
            if not self._may_close(chunk):
                self._keep(chunk)
                return []
            self._pending.append(chunk)
            chunk = b"".join(self._pending)
            self._pending.clear()
            self._size = 0
        frames, rest = _cut(chunk)
        if rest:
            self._keep(rest)
        return frames

    def finish(self) -> list[Frame]:
        """What the stream ended with before a blank line closed it, if anything."""
        rest = b"".join(self._pending)
        self._pending.clear()
        return _read(rest) if rest else []

    def _may_close(self, chunk: bytes) -> bool:
        """Whether to join and cut: never without a line end, and exactly known once it costs."""
        before = self._pending[-1][-1]
        if _LF not in chunk and _CR not in chunk and before != _CR:
            return False
        if self._size < _CHEAP:
            return True
        seam = b"".join([part[-2:] for part in self._pending[-2:]]) + chunk
        return _CLOSE.search(seam) is not None

    def _keep(self, rest: bytes) -> None:
        if not rest:
            return
        self._pending.append(rest)
        self._size += len(rest)
        if self._size > self._largest:
            raise UpstreamError(f"The upstream sent an event of more than {self._largest} bytes.")


def encode(data: bytes) -> bytes:
    """An event with one data line."""
    return b"data: " + data + b"\n\n"


def tidy(frame: Frame) -> bytes:
    """The event's bytes without what crashes SDKs: comments, `id:`, `retry:`, a byte order mark.

    An unterminated event is terminated. An event with nothing of that keeps its own bytes.
    """
    raw, data = frame.raw, frame.data or b""
    if len(raw) - len(data) == 8 and raw[-2] == _LF:
        return raw  # `data: `, the data and two newlines leave no room for another line
    lines = raw.removeprefix(_BOM).splitlines()
    kept = [line for line in lines if line.partition(b":")[0] in {b"data", b"event"}]
    closed = raw.endswith((b"\n\n", b"\n\r\n", b"\r\r", b"\n\r"))
    if closed and len(kept) == len(lines) - 1 and not raw.startswith(_BOM):
        return raw
    return b"\n".join((*kept, b"", b""))


def _cut(stream: bytes) -> tuple[list[Frame], bytes]:
    """The events of a stream, and what follows the last of them."""
    if _is_ordinary(stream):
        return [Frame(stream, stream[6:-2])], b""
    end = b"\r\n" if _CR in stream else b"\n"
    lines = stream.split(end)
    closed = (len(lines) - 1) // 2 * 2
    data = lines[0:closed:2]
    even = all(data) and not any(lines[1:closed:2])
    if not even or (_CR in stream and not _only_crlf(stream, len(lines) - 1)):
        return _cut_mixed(stream)
    close = end + end
    frames = [
        Frame(line + close, line[6:]) if line.startswith(b"data: ") else _read(line + close)[0]
        for line in data
    ]
    return frames, end.join(lines[closed:])


def _is_ordinary(stream: bytes) -> bool:
    """One event of one line: what a paced stream brings with every read."""
    return (
        stream.find(b"\n") == len(stream) - 2
        and stream.endswith(b"\n\n")
        and stream.startswith(b"data: ")
        and _CR not in stream
    )


def _only_crlf(stream: bytes, ends: int) -> bool:
    return stream.count(b"\r") == ends == stream.count(b"\n")


def _cut_mixed(stream: bytes) -> tuple[list[Frame], bytes]:
    frames: list[Frame] = []
    start = 0
    while True:
        blank = _BLANK.match(stream, start)
        if blank:
            frames.append(Frame(blank[0], None))
            start = blank.end()
            continue
        close = _CLOSE.search(stream, start)
        if close is None:
            return frames, stream[start:]
        frames += _read(stream[start : close.end()])
        start = close.end()


def _read(block: bytes) -> list[Frame]:
    """The fields of one event; blank lines in front of it are events without data."""
    blank = _BLANK.match(block)
    if blank:
        rest = block[blank.end() :]
        return [Frame(blank[0], None), *(_read(rest) if rest else ())]
    data: list[bytes] = []
    event = None
    for line in block.removeprefix(_BOM).splitlines():
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"event":
            event = value
    return [Frame(block, b"\n".join(data) if data else None, event)]
