"""A whole gateway on loopback, in a thread of its own."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

from proxy.app import build_gateway
from proxy.edge.server import Server
from proxy.settings import Settings


@contextmanager
def serve_gateway(settings: Settings, data: Path) -> Iterator[int]:
    """Serve with these settings on a free port, and give the port."""
    listening: Future[int] = Future()
    server_settings = settings.server.model_copy(update={"port": 0, "drain_seconds": 0.5})
    gateway = build_gateway(settings, data)
    server = Server(gateway.app, server_settings, gateway.gate, listening.set_result)
    thread = threading.Thread(target=server.run, name="gateway")
    thread.start()
    try:
        yield listening.result(timeout=30)
    finally:
        server.should_exit = True
        thread.join()
