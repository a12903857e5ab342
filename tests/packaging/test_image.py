"""The Dockerfile, step by step, in a bare folder: there is no container here to build it in."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, Launch

TEXT = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
BUILD, FINAL = (
    [line.split(" ", 1) for line in stage.splitlines() if line and not line.startswith("#")]
    for stage in re.split(r"(?m)^FROM .*$", TEXT)[1:]
)


def copy(words: str, folder: Path) -> None:
    """`COPY a b ./`: only what the file names reaches the image."""
    *sources, target = words.split()
    for name in sources:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / target)


def run(words: str, folder: Path) -> None:
    """`RUN …` with /opt and /data moved into the folder."""
    command = words.replace("/opt/", f"{folder}/opt/").replace("python -m venv", "$PYTHON -m venv")
    environ = {**os.environ, "PYTHON": sys.executable}
    subprocess.run(["sh", "-ec", command], cwd=folder / "src", env=environ, check=True)


@pytest.mark.slow
def test_the_image_s_steps_make_a_gateway(tmp_path: Path, launch: Launch) -> None:
    """From the locks and the sources alone, with hashes checked, comes a gateway that answers."""
    source = tmp_path / "src"
    source.mkdir()
    for instruction, words in BUILD:
        if instruction == "COPY":
            copy(words, source)
        elif instruction == "RUN":
            run(words, tmp_path)
    assert not list((tmp_path / "opt" / "usher").rglob("site-packages/pip"))
    url = launch(tmp_path / "opt" / "usher" / "bin" / "usher", tmp_path)
    assert healthy(url)


def healthy(url: str) -> bool:
    """What the image's HEALTHCHECK runs, against this gateway."""
    check = next(words for instruction, words in FINAL if instruction == "HEALTHCHECK")
    command = json.loads(check[check.index("[") :])
    environ = {**os.environ, "USHER_SERVER__PORT": url.rsplit(":", 1)[1]}
    return subprocess.run([sys.executable, *command[1:]], env=environ, check=False).returncode == 0


def test_a_dead_gateway_is_unhealthy() -> None:
    """The health check fails when nothing answers."""
    assert not healthy("http://127.0.0.1:9")


def test_the_image_runs_as_nobody_special() -> None:
    """The last stage drops root before it starts, and builds nothing."""
    steps = [instruction for instruction, _ in FINAL]
    assert steps.index("USER") < steps.index("ENTRYPOINT")
    assert not re.search(r"apt-get|gcc|pip install|hatchling", " ".join(w for _, w in FINAL))


def test_what_the_image_copies_is_not_ignored() -> None:
    """Every source of a COPY is let through by .dockerignore."""
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line[0] == "!"}
    copies = [shlex.split(words)[:-1] for instruction, words in BUILD if instruction == "COPY"]
    assert {name for names in copies for name in names} <= allowed
