"""Runs the official tests of openai-python through the gateway: SDK → Usher → Steady.

The tests come from the sdist of the SDK, the mock that answers and checks each request against
OpenAI's API description from npm (`@stdy/cli`). Both are kept in `.cache/conformance` by version.
`--direct` leaves the gateway out, to tell its failures from those of the mock.
"""

import hashlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from tests.conformance.served import stopped, usher

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TESTS = (
    "tests/api_resources/chat",
    "tests/api_resources/test_models.py",
    "tests/api_resources/test_embeddings.py",
)
EXPECTED = 220
"""How many tests the pinned version of the SDK has there."""
START_SECONDS = 30
MOCK, MOCK_VERSION = "node_modules/@stdy/cli-*/bin/steady*", "0.22.1"
QUIETLY = ("--silent", "--no-audit", "--no-fund")
SPEC_STYLE = tuple(
    f"--validator-{place}-{kind}-format=brackets"
    for place in ("query", "form")
    for kind in ("array", "object")
)


def main() -> int:
    """Prepare, run, report; 0 when every test passed."""
    cache = _cache()
    python = _prepare_python(cache)
    tests = _prepare_tests(cache, python)
    mock = _prepare_mock(cache)
    with _steady(mock) as upstream:
        direct = "--direct" in sys.argv[1:]
        with nullcontext(upstream) if direct else usher(upstream) as base_url:
            output = _run_tests(python, tests, base_url)
    passed, failed = (_count(word, output) for word in ("passed", "(?:failed|errors?)"))
    lost = max(EXPECTED - passed - failed, 0)
    sys.stdout.write(f"conformance: {passed} passed, {failed + lost} failed\n")
    return 0 if passed >= EXPECTED and not failed else 1


def _cache() -> Path:
    """A folder that belongs to these exact versions."""
    names = ("requirements.txt", "sdist.txt", "package-lock.json")
    digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in names)).hexdigest()
    folder = ROOT / ".cache" / "conformance" / digest[:12]
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _prepare_python(cache: Path) -> Path:
    """The interpreter of an environment that has the SDK and what its tests need."""
    home = cache / "venv"
    python = home / "bin" / "python"
    if not (home / ".ready").exists():
        venv.create(home, with_pip=True, clear=True)
        _run(
            python,
            "-m",
            "pip",
            "install",
            "-q",
            "--require-hashes",
            "-r",
            HERE / "requirements.txt",
        )
        (home / ".ready").touch()
    return python


def _prepare_tests(cache: Path, python: Path) -> Path:
    """The unpacked sdist, without the package itself: the tests must meet the installed one."""
    home = cache / "sdist"
    if not (home / ".ready").exists():
        shutil.rmtree(home, ignore_errors=True)
        words = ("download", "-q", "--no-deps", "--no-binary", ":all:", "--require-hashes")
        _run(python, "-m", "pip", *words, "-d", home, "-r", HERE / "sdist.txt")
        with tarfile.open(next(home.glob("*.tar.gz"))) as archive:
            archive.extractall(home, filter="data")
        (home / ".ready").touch()
    return next(path for path in home.glob("openai-*") if path.is_dir())


def _prepare_mock(cache: Path) -> Path:
    """Steady, from the lock file."""
    home = cache / "npm"
    if not (home / ".ready").exists():
        home.mkdir(exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, home)
        _run("npm", "ci", *QUIETLY, cwd=home)
        if not any(home.glob(MOCK)):  # the lock knows Linux on x64; elsewhere the wrapper chooses
            _run("npm", "install", "--no-save", *QUIETLY, f"@stdy/cli@{MOCK_VERSION}", cwd=home)
        (home / ".ready").touch()
    return next(home.glob(MOCK))


@contextmanager
def _steady(mock: Path) -> Iterator[str]:
    """The mock on a free port; gives its base URL, which has no `/v1`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    words = [
        str(mock),
        "--quiet",
        "--host",
        "127.0.0.1",
        "-p",
        port,
        *SPEC_STYLE,
        str(HERE / "openapi.yaml"),
    ]
    with stopped(subprocess.Popen(words, stdout=subprocess.DEVNULL)):
        url = f"http://127.0.0.1:{port}"
        _wait_for(f"{url}/models")
        yield url


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            urllib.request.urlopen(url, timeout=1).close()
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > deadline:
                raise SystemExit(f"nothing answers at {url}") from None
            time.sleep(0.05)
        else:
            return


def _run_tests(python: Path, tests: Path, base_url: str) -> str:
    """Pytest's output, shown as it comes."""
    env = os.environ | {"TEST_API_BASE_URL": base_url, "DEFER_PYDANTIC_BUILD": "false"}
    # A folder of its own: other runs of pytest on the machine clean up the shared one.
    folder = f"--basetemp={tests / '.pytest-temp'}"
    words = (python, "-m", "pytest", *TESTS, "-n", "2", "-q", "-p", "no:cacheprovider", folder)
    lines = []
    with subprocess.Popen(
        [*words, "-o", "addopts="], cwd=tests, env=env, stdout=subprocess.PIPE, text=True
    ) as pytest:
        assert pytest.stdout
        for line in pytest.stdout:
            sys.stdout.write(line)
            lines.append(line)
    return "".join(lines[-5:])


def _count(word: str, output: str) -> int:
    return sum(int(number) for number in re.findall(rf"(\d+) {word}\b", output))


def _run(*words: object, cwd: Path | None = None) -> None:
    subprocess.run([str(word) for word in words], cwd=cwd, check=True)


if __name__ == "__main__":
    sys.exit(main())
