"""A command comes in; a running server whose CPU time and memory can be read goes out."""

import http.client
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

READY_SECONDS = 90.0


class NotReady(Exception):
    """A server that ended, or did not answer in time."""


class Running:
    """A server process with its children."""

    def __init__(self, child: "subprocess.Popen[bytes]", port: int, began: float) -> None:
        self.port = port
        self.start_seconds = 0.0
        self._child = child
        self._began = began
        self._process = psutil.Process(child.pid)

    def cpu(self) -> float:
        """Seconds of CPU, user and system, of the whole tree so far."""
        return sum(_cpu_of(process) for process in self._tree())

    def rss(self) -> int:
        """Resident bytes of the whole tree."""
        return sum(process.memory_info().rss for process in self._tree())

    def own_rss(self) -> int:
        """Resident bytes of the server process alone."""
        resident: int = self._process.memory_info().rss
        return resident

    def wait(self, path: str) -> None:
        """Return with the first 200 for a GET, or with anything but a refused connection."""
        while time.perf_counter() - self._began < READY_SECONDS:
            if self._child.poll() is not None:
                raise NotReady(f"ended with {self._child.returncode}")
            with suppress(OSError, http.client.HTTPException):
                if self._ask(path) < 500:
                    self.start_seconds = time.perf_counter() - self._began
                    return
            time.sleep(0.005)
        raise NotReady("no answer")

    def stop(self) -> None:
        tree = self._tree()
        self._child.terminate()
        _, alive = psutil.wait_procs(tree, timeout=5)
        for process in alive:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._child.wait()

    def _ask(self, path: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        finally:
            connection.close()

    def _tree(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            return [self._process, *self._process.children(recursive=True)]
        return []


@contextmanager
def running(
    command: Sequence[str | Path], port: int, ready: str, environ: Mapping[str, str], folder: Path
) -> Iterator[Running]:
    """The server while the block runs. Raises NotReady."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log").open("wb") as log:
        began = time.perf_counter()
        child = subprocess.Popen(
            command, env=os.environ | environ, cwd=folder, stdout=log, stderr=log
        )
        server = Running(child, port, began)
        try:
            server.wait(ready)
            yield server
        finally:
            server.stop()


def _cpu_of(process: psutil.Process) -> float:
    try:
        # Linux names each process's clock by its id; /proc only counts hundredths of a second.
        return time.clock_gettime((~process.pid << 3) | 2)
    except OSError:
        times = process.cpu_times()
        return times.user + times.system


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
