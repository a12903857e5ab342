"""The edge with fakes behind it, driven in memory or on a loopback socket."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message

from proxy.edge.admit import Gate
from proxy.edge.auth import Door, Keys
from proxy.edge.exchange import Edge
from proxy.edge.passthrough import Forward
from proxy.edge.routes import Extras, build_routes
from proxy.edge.server import Server
from proxy.ledger.null import NullLedger
from proxy.ledger.usage import Row
from proxy.observe.log import silent
from proxy.observe.metrics import Metrics
from proxy.plan.exchange import ChatRequest, Reply
from proxy.plan.identity import Caller
from proxy.settings import Settings
from proxy.upstream.target import Targets
from proxy.upstream.transport import Transport
from proxy.wire import Headers
from tests.fakes.transport import FakeTransport

JSON_TYPE: Headers = [(b"content-type", b"application/json")]
SSE_TYPE: Headers = [(b"content-type", b"text/event-stream")]
CHAT = "/v1/chat/completions"
OK = Reply(200, JSON_TYPE, b"{}")

Chat = Callable[[ChatRequest], Awaitable[Reply]]


class RowLedger(NullLedger):
    """Keeps rows in a list."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def record(self, row: Row) -> None:
        self.rows.append(row)


class KeyBook:
    """Gateway keys by their secret."""

    def __init__(self, keys: dict[str, Caller]) -> None:
        self._keys = keys

    @property
    def open(self) -> bool:
        return False

    def check(self) -> None:
        pass

    def find(self, secret: str) -> Caller | None:
        return self._keys.get(secret)


class FakeTurn:
    """Keeps what it was asked and gives one reply."""

    def __init__(self, reply: Reply = OK) -> None:
        self.asked: list[ChatRequest] = []
        self._reply = reply

    async def chat(self, request: ChatRequest) -> Reply:
        self.asked.append(request)
        return Reply(self._reply.status, list(self._reply.headers), self._reply.body)


async def refuse_chat(_: ChatRequest) -> Reply:
    raise AssertionError("this request is no chat turn")


@dataclass
class Rig:
    """A gateway's edge; `overrides` are settings by section."""

    chat: Chat = field(default_factory=lambda: FakeTurn().chat)
    transport: Transport = field(default_factory=FakeTransport)
    keys: Keys | None = None
    overrides: dict[str, Any] = field(default_factory=dict)
    gate: Gate = field(default_factory=Gate)
    metrics: Metrics = field(default_factory=Metrics)
    ledger: RowLedger = field(default_factory=RowLedger)
    extras: Extras = field(default_factory=Extras)

    def __post_init__(self) -> None:
        server = {"port": 0, "drain_seconds": 5.0, **self.overrides.get("server", {})}
        upstream = {"base_url": "http://up.test/v1", "retries": 0}
        upstream |= self.overrides.get("upstream", {})
        providers = self.overrides.get("providers", ())
        self.settings = Settings.model_validate(
            {"server": server, "upstream": upstream, "providers": providers}
        )
        self.edge = Edge(self.settings.server, Door(self.keys), self.gate, self.metrics, silent())
        ways = {"openai": self.transport}
        self.forward = Forward(self.settings, ways, Targets(self.settings), self.ledger)
        self.app = build_routes(self.edge, self.chat, self.forward, self.extras)

    def server(self, bound: Callable[[int], None] | None = None) -> Server:
        return Server(self.app, self.settings.server, self.gate, bound)


@dataclass
class Answered:
    """A response as it was written; `complete` when it had its regular end."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    chunks: list[bytes] = field(default_factory=list)
    complete: bool = False

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    async def send(self, message: Message) -> None:
        """Take an ASGI message."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            pairs = [(name.decode(), value.decode()) for name, value in message["headers"]]
            self.headers = dict(pairs)
            assert len(self.headers) == len(pairs), "a header came twice"
            return
        if message["body"]:
            self.chunks.append(message["body"])
        self.complete = not message.get("more_body", False)


class Client:
    """A client in memory; it stays connected until `leave`, which cuts its upload when `cut`."""

    def __init__(self, *pieces: bytes, cut: bool = False) -> None:
        self._pieces = list(pieces) or [b""]
        self._cut = cut
        self._left = asyncio.Event()
        self.answered = Answered()

    def leave(self) -> None:
        self._left.set()

    async def receive(self) -> Message:
        if self._pieces:
            piece = self._pieces.pop(0)
            return {
                "type": "http.request",
                "body": piece,
                "more_body": self._cut or bool(self._pieces),
            }
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def ask(
        self, app: ASGIApp, method: str, url: str, headers: Iterable[tuple[str, str]] = ()
    ) -> Answered:
        """Run one request to its end."""
        path, _, query = url.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "scheme": "http",
            "server": ("127.0.0.1", 80),
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
        }
        await app(scope, self.receive, self.answered.send)
        return self.answered


async def ask(
    app: ASGIApp,
    method: str,
    url: str,
    body: bytes | None = None,
    headers: Iterable[tuple[str, str]] = (),
) -> Answered:
    """One request of a patient client."""
    fields = list(headers)
    if body is not None:
        fields.append(("content-length", str(len(body))))
    return await Client(body or b"").ask(app, method, url, fields)


@asynccontextmanager
async def running(rig: Rig) -> AsyncIterator[int]:
    """The rig on a port of loopback, in this event loop."""
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    server = rig.server(port.set_result)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve())
        try:
            yield await port
        finally:
            server.should_exit = True


async def exchange(port: int, request: bytes) -> bytes:
    """All that the server answers to raw bytes until it closes or falls silent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        await writer.drain()
        return await read_response(reader)
    finally:
        writer.close()


async def read_response(reader: asyncio.StreamReader) -> bytes:
    """One response with a length, or everything up to the end of the connection."""
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length":
            return head + await reader.readexactly(int(value))
    return head + await reader.read()
