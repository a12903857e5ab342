"""Several processes behind one port."""

import json
import os
import signal
import urllib.request

import psutil

from tests.commands.conftest import Launch, Running


def workers_of(running: Running) -> list[psutil.Process]:
    """The processes that serve, without Python's own resource tracker."""
    children = psutil.Process(running.process.pid).children()
    return [child for child in children if "resource_tracker" not in " ".join(child.cmdline())]


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


def test_one_that_dies_at_once_stops_all(launch: Launch) -> None:
    """A process killed right after its start is not replaced for ever: Usher says so and stops."""
    running = launch("--workers", "2")
    os.kill(workers_of(running)[0].pid, signal.SIGKILL)
    assert running.process.wait(timeout=60) == 1
