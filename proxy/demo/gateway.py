"""Settings come in; a gateway that listens on loopback, in front of the stand-in, goes out."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from proxy.app import Gateway, build_gateway
from proxy.edge.server import Server
from proxy.judge_settings import Classification
from proxy.memory_settings import Memory
from proxy.settings import Deferral, Log, Settings
from proxy.settings import Server as ServerSettings
from proxy.upstream.standin import Script, StandinTransport

START_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Live:
    """A running gateway and everything that its upstream received."""

    gateway: Gateway
    url: str
    upstream: Script


@contextmanager
def serve_gateway(
    data: Path,
    deferral: Deferral,
    memory: Memory | None = None,
    classification: Classification | None = None,
) -> Iterator[Live]:
    """Run a gateway in a thread, with everything else at its default."""
    upstream = Script()
    settings = Settings(
        server=ServerSettings(port=0, drain_seconds=1.0),
        deferral=deferral,
        memory=memory or Memory(),
        classification=classification or Classification(),
        log=Log(level="error"),
    )
    transport = StandinTransport(upstream, cache=True)
    gateway = build_gateway(settings, data, {"standin": transport})
    listening: Future[int] = Future()
    server = Server(gateway.app, settings.server, gateway.gate, listening.set_result)
    thread = threading.Thread(target=_run, args=(server, listening), name="usher-demo")
    thread.start()
    try:
        port = listening.result(START_SECONDS)
        yield Live(gateway, f"http://127.0.0.1:{port}/v1", upstream)
    finally:
        server.should_exit = True
        thread.join()


def _run(server: Server, listening: "Future[int]") -> None:
    """Serve; whoever waits for the port hears of a failure to start, too."""
    try:
        with suppress(SystemExit):  # uvicorn's way to say that it could not start
            server.run()
    finally:
        if not listening.done():
            listening.set_exception(OSError("the demo's gateway did not start"))
