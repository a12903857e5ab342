"""Gateways started as an operator starts them: as a process of their own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import psutil
import pytest


@dataclass(frozen=True, slots=True)
class Running:
    """A process that serves, where, and the file with what it logs."""

    process: subprocess.Popen[str]
    url: str
    log: Path

    def events(self) -> list[str]:
        """The names of the lines that it has logged so far."""
        lines = self.log.read_text().splitlines()
        return [json.loads(line)["event"] for line in lines if line.startswith("{")]


Launch: TypeAlias = Callable[..., Running]


def workers_of(running: Running) -> list[psutil.Process]:
    """The processes that serve, without Python's own resource tracker and what has just ended."""
    children = psutil.Process(running.process.pid).children()
    return [child for child in children if "spawn_main" in _words(child)]


def _words(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def eventually(check: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until something is so, and fail when it takes too long."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.02)


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    """Starts `usher serve --port 0 --json` with further words; ends it with SIGTERM."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> Running:
        measured = {name: text for name, text in os.environ.items() if name.startswith("COV")}
        environ = {**measured, "PATH": os.defpath, "USHER_DATA": str(tmp_path / "data")}
        command = [sys.executable, "-m", "proxy.cli", "serve", "--port", "0", "--json", *words]
        log = tmp_path / f"log{len(started)}"
        with log.open("w") as stderr:
            process = subprocess.Popen(
                command, env=environ, stdout=subprocess.PIPE, stderr=stderr, text=True
            )
        started.append(process)
        assert process.stdout is not None
        url: str = json.loads(process.stdout.readline())["url"]
        return Running(process, url.removesuffix("/v1"), log)

    yield start
    for process in started:
        with process:
            if process.poll() is not None:
                continue
            process.terminate()
            assert process.wait(timeout=60) == 0, "SIGTERM must end in a clean exit"
