"""A Redis of our own, on loopback, that keeps nothing on disk and can be stopped and frozen."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
import redis

REQUIRED = os.environ.get("USHER_TEST_REDIS") == "required"
"""Set where a missing server must be a failure: in `.ci/run`."""


class RedisServer:
    """The server of one test; a restart forgets everything."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        self._folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it and wait until it answers."""
        words = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder)]
        self._process = subprocess.Popen(
            [self._program, *words, "--save", "", "--appendonly", "no"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 30
        with redis.Redis(port=self.port) as client:
            while time.monotonic() < deadline:
                try:
                    client.ping()
                except redis.ConnectionError:
                    time.sleep(0.02)
                else:
                    return
        raise AssertionError("redis-server did not answer")

    def stop(self) -> None:
        """End it at once, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Let it hold connections and answer nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


def find_redis() -> str:
    """The installed server's program; skips the test where there is none."""
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is not None:
        return program
    if REQUIRED:
        pytest.fail("USHER_TEST_REDIS=required, and no redis-server is installed")
    pytest.skip("no redis-server is installed")
