"""A raw upstream on loopback: keeps each request byte for byte, answers what a script says.

    async with ScriptedUpstream([json_reply(b"{}")], [stream_head(), chunk(b"x"), CUT]) as upstream:
        ...  # two requests to upstream.url
    assert upstream.requests[0].body == b"…"

A script is a list of steps, one script per request in order of arrival. A step is bytes to write
or a control: `Wait`, `Drip`, `CUT` (orderly close), `RST`, `HANG` (never close), `CLOSE_ON_NEXT`.
A script that starts with `EARLY` runs before the request's body is read; one that starts with
`DEAF` takes nothing more off the wire until `HEAR`. After a script's last step the connection
stays open for the next request.
"""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from types import TracebackType
from typing import Self, TypeAlias, cast


class Control(Enum):
    """What a script can do besides writing."""

    CUT = auto()
    RST = auto()
    HANG = auto()
    CLOSE_ON_NEXT = auto()
    EARLY = auto()
    DEAF = auto()
    HEAR = auto()


CUT = Control.CUT
RST = Control.RST
HANG = Control.HANG
CLOSE_ON_NEXT = Control.CLOSE_ON_NEXT
EARLY = Control.EARLY
DEAF = Control.DEAF
HEAR = Control.HEAR


@dataclass(frozen=True, slots=True)
class Wait:
    """A silence."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Drip:
    """Bytes written one by one (or `size` by `size`), each in a write of its own."""

    data: bytes
    size: int = 1


Step: TypeAlias = bytes | Wait | Drip | Control
Script: TypeAlias = Sequence[Step]


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it came over the wire; `raw` is all of it, `body` is without chunk frames."""

    connection: int
    raw: bytes
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    gone: asyncio.Event
    """Set when the client has closed its side of the connection."""

    def header(self, name: str) -> str | None:
        """The value of the only header of that name; None without one."""
        values = [value for key, value in self.headers if key.lower() == name]
        assert len(values) <= 1, f"{name} came {len(values)} times"
        return values[0] if values else None


class ScriptedUpstream:
    """An async context manager; scripts may also be computed from the request by `answer`."""

    def __init__(
        self,
        *scripts: Script,
        answer: Callable[[Received], Script | Awaitable[Script]] | None = None,
    ) -> None:
        self.requests: list[Received] = []
        self.connections = 0
        self.taken = 0
        """Bytes read off all connections."""
        self._scripts = list(scripts)
        self._answer = answer
        self._tasks: list[asyncio.Task[None]] = []
        self._open: set[_Connection] = set()
        self._arrived = asyncio.Condition()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for connection in list(self._open):
            connection.stop()
        ends = await asyncio.gather(*self._tasks, return_exceptions=True)
        broken = [end for end in ends if isinstance(end, Exception)]
        if broken and error is None:
            raise broken[0]

    async def received(self, count: int = 1) -> Received:
        """Wait until that many requests are here; the last of them."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)
        return self.requests[count - 1]

    async def record(self, request: Received) -> Script:
        """Keep the request and choose its script."""
        self.requests.append(request)
        async with self._arrived:
            self._arrived.notify_all()
        if self._answer is not None:
            script = self._answer(request)
            return await script if isinstance(script, Awaitable) else script
        return self._scripts.pop(0) if self._scripts else [reply(500, b"the script has ended")]

    def next_starts_with(self, control: Control) -> bool:
        """Whether the next script must begin before its request's body is read."""
        return bool(self._scripts and self._scripts[0] and self._scripts[0][0] is control)

    def opened(self, connection: "_Connection") -> None:
        self.connections += 1
        connection.number = self.connections
        self._open.add(connection)
        connection.task = asyncio.get_running_loop().create_task(connection.serve())
        self._tasks.append(connection.task)

    def closed(self, connection: "_Connection") -> None:
        self._open.discard(connection)


class _Connection(asyncio.Protocol):
    """One client connection: reads requests, plays scripts."""

    task: asyncio.Task[None]
    number = 0

    def __init__(self, upstream: ScriptedUpstream) -> None:
        self._upstream = upstream
        self._reader = asyncio.StreamReader(limit=2**26)
        self._seen = bytearray()
        self._transport: asyncio.Transport
        self._gone = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not declared as one
        self._upstream.opened(self)

    def data_received(self, data: bytes) -> None:
        self._upstream.taken += len(data)
        self._reader.feed_data(data)

    def eof_received(self) -> bool:
        self._leave()
        return True  # the other direction stays open: a script may still write

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        self._upstream.closed(self)

    def stop(self) -> None:
        self._transport.abort()
        self.task.cancel()

    def _leave(self) -> None:
        if not self._gone.is_set():
            self._reader.feed_eof()
            self._gone.set()

    async def serve(self) -> None:
        try:
            while not self._transport.is_closing():
                if not await self._exchange():
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        self._transport.close()

    async def _exchange(self) -> bool:
        """Serve one request; False when the connection has ended."""
        self._seen.clear()
        head = await self._take_until(b"\r\n\r\n")
        line, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        method, target, _ = line.split(" ", 2)
        fields = [(name, value.strip(" ")) for name, _, value in (f.partition(":") for f in lines)]
        if self._upstream.next_starts_with(DEAF):
            self._transport.pause_reading()
        unread = any(map(self._upstream.next_starts_with, (EARLY, DEAF)))
        body = b"" if unread else await self._read_body(fields)
        request = Received(self.number, bytes(self._seen), method, target, fields, body, self._gone)
        return await self._play(await self._upstream.record(request))

    async def _read_body(self, fields: list[tuple[str, str]]) -> bytes:
        named = {name.lower(): value for name, value in fields}
        if "chunked" not in named.get("transfer-encoding", ""):
            return await self._take(int(named.get("content-length", "0")))
        parts: list[bytes] = []
        while size := int((await self._take_until(b"\r\n")).split(b";")[0], 16):
            parts.append((await self._take(size + 2))[:-2])
        while await self._take_until(b"\r\n") != b"\r\n":
            pass
        return b"".join(parts)

    async def _take(self, count: int) -> bytes:
        data = await self._reader.readexactly(count)
        self._seen += data
        return data

    async def _take_until(self, end: bytes) -> bytes:
        data = await self._reader.readuntil(end)
        self._seen += data
        return data

    async def _play(self, script: Script) -> bool:
        for step in script:
            match step:
                case bytes():
                    self._transport.write(step)
                case Drip():
                    for start in range(0, len(step.data), step.size):
                        self._transport.write(step.data[start : start + step.size])
                        await asyncio.sleep(0)
                case Wait():
                    await asyncio.sleep(step.seconds)
                case Control.EARLY | Control.DEAF:
                    pass
                case Control.HEAR:
                    self._transport.resume_reading()
                case _:
                    await self._end(step)
                    return False
        return True

    async def _end(self, control: Control) -> None:
        if control is HANG:
            await self._gone.wait()
        elif control is CLOSE_ON_NEXT:
            await self._reader.read(1)
        elif control is RST:
            raw = self._transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()


def head(status: int, *fields: tuple[str, str]) -> bytes:
    """A status line and headers."""
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {value}" for name, value in fields)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def reply(status: int, body: bytes, *fields: tuple[str, str]) -> bytes:
    """A whole response with its length."""
    return head(status, *fields, ("Content-Length", str(len(body)))) + body


def json_reply(body: bytes, *fields: tuple[str, str], status: int = 200) -> bytes:
    """A whole JSON response."""
    return reply(status, body, ("Content-Type", "application/json"), *fields)


def stream_head(*fields: tuple[str, str]) -> bytes:
    """The head of an SSE response in chunks."""
    return head(
        200, ("Content-Type", "text/event-stream"), *fields, ("Transfer-Encoding", "chunked")
    )


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def last_chunk(*trailers: tuple[str, str]) -> bytes:
    """The end of a chunked body."""
    return ("0\r\n" + "".join(f"{name}: {value}\r\n" for name, value in trailers) + "\r\n").encode()


def sse_reply(pieces: Iterable[bytes]) -> list[Step]:
    """A whole SSE response, each piece a chunk and a write of its own."""
    steps: list[Step] = [stream_head()]
    for piece in pieces:
        steps += [chunk(piece), Wait(0)]
    return [*steps, last_chunk()]
