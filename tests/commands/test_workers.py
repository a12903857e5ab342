"""Several processes behind one port."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest

from proxy.commands.workers import Work, serve_many
from proxy.errors import UsherError
from proxy.settings import Ledger, Settings
from tests.commands.conftest import Launch, Running, eventually, workers_of


def alive(running: Running) -> bool:
    """Whether the port answers."""
    with urllib.request.urlopen(f"{running.url}/livez", timeout=60) as reply:
        return bool(json.load(reply)["status"] == "ok")


def test_they_share_a_port_and_stop_together(launch: Launch) -> None:
    """Two processes serve; one signal to the first process ends all of them cleanly."""
    running = launch("--workers", "2")
    workers = workers_of(running)
    assert len(workers) == 2
    assert alive(running)
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(timeout=60) == 0
    assert not psutil.wait_procs(workers, timeout=5)[1]


def _scrape(running: Running, name: str) -> float:
    """A counter, as whichever process answers shows it."""
    with urllib.request.urlopen(f"{running.url}/metrics", timeout=60) as reply:
        lines = reply.read().decode().splitlines()
    return float(next((line.split()[-1] for line in lines if line.startswith(name)), "0"))


def test_metrics_are_those_of_all(launch: Launch) -> None:
    """Each scrape counts every request, whoever answered it; nothing is lost by a kill."""
    running = launch("--workers", "2")
    counted = 'usher_requests_total{endpoint="passthrough",status="404"}'
    for _ in range(20):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{running.url}/v1/nothing/here", timeout=60)
    eventually(lambda: _scrape(running, counted) == 20)
    before = workers_of(running)
    os.kill(before[0].pid, signal.SIGKILL)
    eventually(lambda: len(set(workers_of(running)) - {before[0]}) == 2)
    assert {_scrape(running, counted) for _ in range(10)} == {20}


def test_one_that_is_killed_is_replaced(launch: Launch) -> None:
    """A process that had served and is gone gets a successor; the port answers all the while."""
    running = launch("--workers", "2")
    before = workers_of(running)
    os.kill(before[0].pid, signal.SIGKILL)
    before[0].wait(60)
    assert alive(running)
    eventually(lambda: len(set(workers_of(running)) - {before[0]}) == 2)


def test_what_cannot_start_is_not_tried_for_ever(tmp_path: Path) -> None:
    """When the processes end before any has served, Usher says so in one line and ends."""
    (tmp_path / "file").touch()
    settings = Settings(ledger=Ledger(url=f"sqlite:///{tmp_path}/file/usher.db"))
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        pytest.raises(UsherError, match="a process ended before it served, so Usher stops"),
    ):
        serve_many(Work(settings, tmp_path, listener), print)
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def test_a_ledger_that_cannot_be_written_is_said_once(tmp_path: Path) -> None:
    """It is found before any process starts."""
    (tmp_path / "file").touch()
    environ = {
        "PATH": os.defpath,
        "USHER_DATA": str(tmp_path),
        "USHER_LEDGER__URL": f"sqlite:///{tmp_path}/file/usher.db",
    }
    command = [sys.executable, "-m", "proxy.cli", "serve", "--port", "0", "--workers", "2"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("usher: ledger.url: cannot write")
    assert done.stderr.count("\n") == 1
