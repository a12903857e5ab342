"""What is published is what works: the wheel, away from the repository."""

import json
import subprocess
import sys
import sysconfig
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, Launch

FOREIGN_SUFFIXES = {".pyc", ".db"}


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Path:
    """An empty environment with the wheel; only its dependencies are borrowed from this one."""
    folder = tmp_path / "venv"
    venv.create(folder)
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = folder / "bin" / "python"
    install = ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", "--python", python, *install], check=True)
    return folder / "bin"


def test_the_wheel_holds_the_package_only(wheel: Path) -> None:
    """Every module and data file of proxy, the question wording, the licence, and no tests."""
    names = set(zipfile.ZipFile(wheel).namelist())
    listed = subprocess.run(
        ["git", "ls-files", "proxy"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    there = {name for name in listed.stdout.split() if (ROOT / name).exists()}
    assert there <= names
    assert any(name.startswith("proxy/questions/") for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"proxy", "usher_gateway"}
    assert not [name for name in names if Path(name).suffix in FOREIGN_SUFFIXES]


def test_an_installed_wheel_serves(installed: Path, tmp_path: Path, launch: Launch) -> None:
    """In an empty environment and folder `usher serve` starts and answers."""
    where = [str(installed / "python"), "-c", "import proxy; print(proxy.__file__)"]
    place = subprocess.run(where, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert str(tmp_path) in place.stdout
    url = launch(installed / "usher", tmp_path)
    with urllib.request.urlopen(f"{url}/livez", timeout=30) as reply:
        assert json.load(reply) == {"status": "ok"}


def test_the_version_is_the_same_everywhere(installed: Path) -> None:
    """The command says what the metadata says."""
    command = [str(installed / "usher"), "version", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["version"] in (ROOT / "pyproject.toml").read_text()
