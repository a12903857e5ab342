"""A wheel of the project, and gateways started from what was installed of it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

ROOT = Path(__file__).resolve().parents[2]
Launch: TypeAlias = Callable[[Path, Path], str]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel, built from its sources."""
    dist = tmp_path_factory.mktemp("dist")
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(dist)]
    subprocess.run([sys.executable, "-m", "pip", *build, str(ROOT)], check=True)
    return next(dist.glob("*.whl"))


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    """Starts `usher serve` from an installation, in a folder; returns its base URL."""
    running: list[subprocess.Popen[str]] = []

    def start(program: Path, folder: Path) -> str:
        environ = {"PATH": os.defpath, "HOME": str(tmp_path), "USHER_DATA": str(tmp_path / "data")}
        process = subprocess.Popen(
            [program, "serve", "--port", "0", "--json"],
            cwd=folder,
            env=environ,
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        assert process.stdout is not None
        url: str = json.loads(process.stdout.readline())["url"]
        return url.removesuffix("/v1")

    yield start
    for process in running:
        with process:
            process.terminate()
            assert process.wait(timeout=60) == 0, "SIGTERM must end in a clean exit"
