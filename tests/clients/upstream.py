"""Nothing comes in; the stand-in model behind a loopback address, and what it received, go out."""

import threading
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import uvicorn

from proxy.upstream.standin import Script, StandinTransport
from proxy.upstream.transport import Transport, UpstreamRequest

Message = MutableMapping[str, Any]
START_SECONDS = 30


@contextmanager
def standin() -> Iterator[tuple[str, Script]]:
    """Serve the model; it refuses more than 128 tools, as OpenAI does."""
    script = Script()
    with serve(StandinTransport(script, max_tools=128)) as address:
        yield address, script


@contextmanager
def serve(transport: Transport) -> Iterator[str]:
    """A transport's answers at an address of loopback."""
    listening: Future[int] = Future()
    server = Server(Wrapper(transport), listening)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.result(START_SECONDS)}/v1"
    finally:
        server.should_exit = True
        thread.join()


class Server(uvicorn.Server):
    """uvicorn that tells its port."""

    def __init__(self, app: Any, listening: Future[int]) -> None:
        config = uvicorn.Config(app, port=0, lifespan="off", log_level="error", access_log=False)
        super().__init__(config)
        self._listening = listening

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self._listening.set_result(self.servers[0].sockets[0].getsockname()[1])


class Wrapper:
    """A transport as an ASGI application."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        url = f"http://standin{scope['path']}"
        headers = list(scope["headers"])
        request = UpstreamRequest(scope["method"], url, headers, body, 5, 5)
        response = await self._transport.send(request)
        head = {"status": response.status, "headers": response.headers}
        await send({"type": "http.response.start", **head})
        async for chunk in response.chunks():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body"})
