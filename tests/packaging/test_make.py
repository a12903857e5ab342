"""The first of the two commands, on a machine that has only Python and make."""

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a clone holds, and nothing that was built or installed here."""
    listing = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    folder = tmp_path / "checkout"
    for name in listing.stdout.split():
        if (ROOT / name).is_file() and not name.startswith(("tests/", "cassettes/")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture
def running(checkout: Path, tmp_path: Path) -> Iterator[str]:
    """The URL that `make run` announces, once it has installed what it needs."""
    tools = {Path(sys.executable).resolve().parent, Path("/usr/bin"), Path("/bin")}
    environ = {
        **{name: value for name, value in os.environ.items() if name.startswith("PIP_")},
        "PATH": os.pathsep.join(map(str, tools)),
        "HOME": os.environ.get("HOME", str(tmp_path)),
        "USHER_DATA": str(tmp_path / "data"),
    }
    command = ["make", "run", f"PYTHON={Path(sys.executable).resolve()}", "ARGS=--port 0 --json"]
    with subprocess.Popen(
        command,
        cwd=checkout,
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        announced = next((line for line in lines if line.startswith("{")), None)
        assert announced, "make run ended before it served"
        yield json.loads(announced)["url"].removesuffix("/v1")
        os.killpg(process.pid, signal.SIGTERM)


@pytest.mark.slow
def test_make_run_serves(running: str) -> None:
    """From a clean checkout `make run` installs with hashes checked, starts and answers."""
    with urllib.request.urlopen(f"{running}/livez", timeout=30) as reply:
        assert json.load(reply) == {"status": "ok"}
