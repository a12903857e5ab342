"""A chat model that knows nothing of decisions comes in; a decision provider's address goes out."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from proxy.edge.admit import Gate
from proxy.edge.auth import Door
from proxy.edge.decisions import decision_routes
from proxy.edge.exchange import Edge
from proxy.edge.passthrough import Forward
from proxy.edge.routes import Extras, build_routes
from proxy.errors import BadRequest
from proxy.judge.books import NoPrices
from proxy.judge.build import Around, Judges
from proxy.ledger.null import NullLedger
from proxy.observe.log import silent
from proxy.observe.metrics import Metrics
from proxy.plan.exchange import ChatRequest, Reply
from proxy.plan.identity import Caller
from proxy.settings import Settings
from proxy.upstream.aiohttp_transport import AiohttpTransport
from proxy.upstream.target import Targets
from proxy.upstream.transport import Prepared, Transport, UpstreamRequest
from tests.clients.upstream import START_SECONDS, Server, Wrapper
from tests.fakes.transport import FakeTransport
from tests.judge.chatmodel import ChatModel
from tests.judge.fakes import reply

KEY = "usher-test-key"
MODELS = {"object": "list", "data": [{"id": "small", "object": "model", "created": 0}]}


class Keys:
    """One key."""

    open = False

    def check(self) -> None:
        pass

    def find(self, secret: str) -> Caller | None:
        return Caller(key="client") if secret == KEY else None


class ClosingServer(Server):
    """Closes the connections that its own loop opened."""

    def __init__(self, app: object, listening: Future[int], transport: Transport) -> None:
        super().__init__(app, listening)
        self._transport = transport

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        await self._transport.aclose()


class ChatServer:
    """The stand-in model with a model list."""

    def __init__(self) -> None:
        self._model = ChatModel()

    def __call__(self, request: UpstreamRequest) -> Prepared:
        if request.method == "GET":
            return reply(MODELS, 200, [(b"content-type", b"application/json")])
        return self._model(request)


@contextmanager
def provider(*, keyed: bool) -> Iterator[str]:
    """The base URL of a gateway that decides by emulation."""
    transport = AiohttpTransport()
    with (
        _listening(Wrapper(FakeTransport(answer=ChatServer())), transport) as upstream,
        _listening(_build(upstream, transport, keyed=keyed), transport) as url,
    ):
        yield url


def _build(upstream: str, transport: Transport, *, keyed: bool) -> object:
    settings = Settings.model_validate(
        {
            "upstream": {"base_url": f"{upstream}/v1", "api_key": "upstream"},
            "classification": {"enabled": True, "chat": {"model": "small"}},
        }
    )
    ways = {"openai": transport}
    ledger = NullLedger()
    edge = Edge(settings.server, Door(Keys() if keyed else None), Gate(), Metrics(), silent())
    judges = Judges(settings, Around(ways, NoPrices(), ledger.record, silent()))
    forward = Forward(settings, ways, Targets(settings), ledger)
    return build_routes(edge, _chat, forward, Extras(decision_routes(edge, judges, forward, 30)))


async def _chat(_: ChatRequest) -> Reply:
    raise BadRequest("This gateway only decides.")


@contextmanager
def _listening(app: object, transport: Transport) -> Iterator[str]:
    listening: Future[int] = Future()
    server = ClosingServer(app, listening, transport)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.result(START_SECONDS)}"
    finally:
        server.should_exit = True
        thread.join()
