"""A running `usher serve` takes a changed configuration, and is not disturbed by a wrong one."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import Launch, Running, eventually, workers_of

_BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True})


class Upstream(ThreadingHTTPServer):
    """Streams its name, and ends when it may."""

    daemon_threads = True

    def __init__(self, name: str) -> None:
        super().__init__(("127.0.0.1", 0), Streaming)
        self.name = name
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.may_end.set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Streaming(BaseHTTPRequestHandler):
    """One answer in two events."""

    server: Upstream

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self._write(_event({"content": f"{self.server.name} begins. "}, None))
        self.server.begun.set()
        self.server.may_end.wait(60)
        self._write(_event({"content": f"{self.server.name} ends."}, "stop") + b"data: [DONE]\n\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Say nothing."""

    def _write(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()


def _event(delta: dict[str, str], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode() + b"\n\n"


@pytest.fixture
def upstreams() -> Iterator[tuple[Upstream, Upstream]]:
    """Two that can be told apart."""
    pair = Upstream("old"), Upstream("new")
    yield pair
    for one in pair:
        one.may_end.set()
        one.shutdown()
        one.server_close()


def _write(path: Path, upstream: Upstream, further: str = "") -> None:
    path.write_text(f"upstream:\n  base_url: {upstream.url}\n{further}")


def _ask(running: Running) -> str:
    request = urllib.request.Request(
        f"{running.url}/v1/chat/completions",
        data=_BODY.encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        return str(reply.read().decode())


def _metrics(running: Running) -> str:
    with urllib.request.urlopen(f"{running.url}/metrics", timeout=60) as reply:
        return str(reply.read().decode())


def test_a_stream_ends_as_it_began(
    launch: Launch, tmp_path: Path, upstreams: tuple[Upstream, Upstream]
) -> None:
    """An edited file serves the next request; the one that runs keeps its upstream to its end."""
    old, new = upstreams
    config = tmp_path / "usher.yaml"
    _write(config, old)
    running = launch("--config", str(config))
    old.may_end.clear()
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(_ask(running)))
    thread.start()
    assert old.begun.wait(60)
    _write(config, new)
    eventually(lambda: "config_reloaded" in running.events())
    assert "new begins. " in _ask(running)
    old.may_end.set()
    thread.join(60)
    assert "old ends." in answers[0]
    assert answers[0].endswith("data: [DONE]\n\n")


def test_a_signal_reads_it_and_a_broken_file_keeps_the_old(
    launch: Launch, tmp_path: Path, upstreams: tuple[Upstream, Upstream]
) -> None:
    """SIGHUP takes what is valid at once; what is not is one line, a metric, and nothing else."""
    old, new = upstreams
    config = tmp_path / "usher.yaml"
    _write(config, old)
    running = launch("--config", str(config))
    _write(config, new, "deferral:\n  mod: off\n")
    running.process.send_signal(signal.SIGHUP)
    eventually(lambda: "config_not_reloaded" in running.events())
    assert "did you mean deferral.mode?" in running.log.read_text()
    assert "old begins. " in _ask(running)
    assert "usher_config_stale 1.0" in _metrics(running)
    _write(config, new, "server:\n  drain_seconds: 1\nledger:\n  keep_days: 7\n")
    running.process.send_signal(signal.SIGHUP)
    eventually(lambda: "needs_a_restart" in running.events())
    line = json.loads(running.log.read_text().splitlines()[-1])
    assert line["settings"] == ["server.drain_seconds", "ledger.keep_days"]
    assert "new begins. " in _ask(running)
    assert "usher_config_stale 0.0" in _metrics(running)
    assert 'usher_config_reloads_total{outcome="failed"}' in _metrics(running)


def test_the_command_line_still_wins(
    launch: Launch, tmp_path: Path, upstreams: tuple[Upstream, Upstream]
) -> None:
    """A flag that was given at the start outlives a reload, and a lost file is noticed."""
    old, new = upstreams
    config = tmp_path / "usher.yaml"
    _write(config, old)
    running = launch("--config", str(config), "--capture", str(tmp_path / "captured"))
    _write(config, new, "prediction:\n  capture: /nowhere\n")
    eventually(lambda: "config_reloaded" in running.events())
    assert "prediction.capture" not in running.log.read_text()
    config.unlink()
    eventually(lambda: "config_not_reloaded" in running.events())
    assert "new begins. " in _ask(running)


_ON_A_TERMINAL = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it would be ignored
os.close(os.open(os.ttyname(0), os.O_RDWR))  # becomes the controlling terminal
words = ["-m", "proxy.cli", "serve", "--port", "0", "--json"]
os.execv(sys.executable, [sys.executable, *words])
"""


def test_a_closed_terminal_stops_it(tmp_path: Path) -> None:
    """Its signal is that of a reload, but nobody could stop the gateway any more."""
    outside, inside = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _ON_A_TERMINAL],
        stdin=inside,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "USHER_DATA": str(tmp_path)},
        start_new_session=True,
    )
    os.close(inside)
    with process:
        assert process.stdout is not None
        assert b"url" in process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
        os.close(outside)
        try:
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()


def test_workers_are_all_told(
    launch: Launch, tmp_path: Path, upstreams: tuple[Upstream, Upstream]
) -> None:
    """One SIGHUP to the first process reaches every other."""
    old, new = upstreams
    config = tmp_path / "usher.yaml"
    _write(config, old)
    running = launch("--config", str(config), "--workers", "2")
    _write(config, new)
    running.process.send_signal(signal.SIGHUP)
    eventually(lambda: running.events().count("config_reloaded") >= 2)
    assert all("new begins. " in _ask(running) for _ in range(8))


def test_a_worker_that_comes_later_has_the_newest(
    launch: Launch, tmp_path: Path, upstreams: tuple[Upstream, Upstream]
) -> None:
    """Its predecessor was killed after a reload, and the file has been broken since then."""
    old, new = upstreams
    config = tmp_path / "usher.yaml"
    _write(config, old)
    running = launch("--config", str(config), "--workers", "2")
    _write(config, new)
    eventually(lambda: running.events().count("config_reloaded") >= 2)
    time.sleep(1.2)  # the first process looks once a second
    config.write_text("nonsense")
    before = workers_of(running)
    os.kill(before[0].pid, signal.SIGKILL)
    eventually(lambda: len(set(workers_of(running)) - {before[0]}) == 2)
    os.kill(before[1].pid, signal.SIGKILL)
    assert "new begins. " in _ask(running)
