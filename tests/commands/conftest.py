"""Gateways started as an operator starts them: as a process of their own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest


@dataclass(frozen=True, slots=True)
class Running:
    """A process that serves, and where."""

    process: subprocess.Popen[str]
    url: str


Launch: TypeAlias = Callable[..., Running]


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    """Starts `usher serve --port 0 --json` with further words; ends it with SIGTERM."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> Running:
        measured = {name: text for name, text in os.environ.items() if name.startswith("COV")}
        environ = {**measured, "PATH": os.defpath, "USHER_DATA": str(tmp_path / "data")}
        command = [sys.executable, "-m", "proxy.cli", "serve", "--port", "0", "--json", *words]
        process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        url: str = json.loads(process.stdout.readline())["url"]
        return Running(process, url.removesuffix("/v1"))

    yield start
    for process in started:
        with process:
            if process.poll() is not None:
                continue
            process.terminate()
            assert process.wait(timeout=60) == 0, "SIGTERM must end in a clean exit"
