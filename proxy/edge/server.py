"""An application and settings come in; it listens, serves, and drains when it is told to stop."""

import asyncio
import gc
import logging
import socket
from collections.abc import Callable
from importlib.util import find_spec
from threading import current_thread, main_thread
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from proxy.edge.admit import Gate
from proxy.edge.hangup import SIGHUP, Terminal
from proxy.edge.heap import keep_large_blocks
from proxy.edge.protocol import Protocol
from proxy.edge.stalled import Stalled
from proxy.settings import Server as Settings

KEEP_ALIVE_SECONDS = 75
"""Longer than the 60 s of common load balancers: the side that reuses a connection hangs up."""
LAST_SECONDS = 5
"""For cancelled requests, which need a second or two to tell their clients."""


class Server(uvicorn.Server):
    """uvicorn, which first finishes what runs, and meanwhile still answers probes.

    The first signal turns `/readyz` and new requests to 503. The second one, or the end of
    `drain_seconds`, cancels what still runs. `bound` is called with the port once it listens,
    `hangup` with each SIGHUP, unless that means that the terminal is gone: then it stops.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        gate: Gate,
        bound: Callable[[int], None] | None = None,
        hangup: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(_configure(app, settings))
        logging.getLogger("uvicorn.error").addFilter(_is_news)
        self._settings = settings
        self._gate = gate
        self._bound = bound
        self._hangup = hangup
        self._terminal = Terminal()
        self._owns_process = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def handle_exit(self, _signal: int, _frame: FrameType | None) -> None:
        """Unlike uvicorn, do not raise the signal again at the end: a drained exit is a success."""
        if self._gate.draining and self._loop is not None:
            self._loop.call_soon_threadsafe(self._gate.rush)
        self._gate.draining = True
        self.should_exit = True

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve with an event loop of its own until a signal or `should_exit` stops it."""
        self._owns_process = current_thread() is main_thread()
        if self._owns_process:
            keep_large_blocks()
        super().run(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        if self._owns_process and SIGHUP is not None:
            self._loop.add_signal_handler(SIGHUP, self._hang_up, SIGHUP)
        await super().startup(sockets)
        if self._owns_process:
            settle_memory()
        if self._bound is not None:
            self._bound(self.port)

    def _hang_up(self, number: int) -> None:
        if self._terminal.gone:
            self.handle_exit(number, None)
        elif self._hangup is not None:
            self._hangup()

    @property
    def port(self) -> int:
        port: int = self.servers[0].sockets[0].getsockname()[1]
        return port

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Hang up on clients that do not even take the end of their answer.

        A closed connection waits until its last bytes are taken, and the loop's end waits for it.
        """
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            if isinstance(connection, Protocol):
                connection.transport.abort()
        await asyncio.sleep(0)

    async def main_loop(self) -> None:
        stalled = Stalled(self._settings.client_seconds)
        stalled.watch(self.server_state.connections)
        await super().main_loop()
        await self._gate.drain(self._settings.drain_seconds)
        stalled.stop()
        for task in list(self.server_state.tasks):
            task.cancel()


def settle_memory() -> None:
    """Take what exists after warm-up out of garbage collection: it lives as long as the process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 1000)
    gc.enable()


def _is_news(record: logging.LogRecord) -> bool:
    """A response that is cut short because the upstream was has a line of its own already."""
    return record.msg != "ASGI callable returned without completing response."


def _configure(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=Protocol,
        loop="uvloop" if find_spec("uvloop") else "asyncio",
        ws="none",
        lifespan="on",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=LAST_SECONDS,
    )
