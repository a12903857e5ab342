"""Runs the decision clients and `jevcompat` against a gateway that decides by emulation."""

import hashlib
import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

from tests.clients.decisions.gateway import KEY, provider

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
TIMEOUT_SECONDS = 300

Verdict = tuple[str, str | None]
"""A check, and what is wrong with it."""


def main() -> int:
    """Prepare, run, report; 0 when all passed."""
    python = prepare()
    verdicts: list[Verdict] = []
    with provider(keyed=True) as url:
        verdicts += run_clients(python, url)
        verdicts += run_conformance(python, url, KEY)
    with provider(keyed=False) as url:
        verdicts += run_conformance(python, url, None)
    for name, fault in verdicts:
        sys.stdout.write(f"{name:48} {fault or 'ok'}\n")
    failed = sum(fault is not None for _, fault in verdicts)
    sys.stdout.write(f"decisions: {len(verdicts) - failed} passed, {failed} failed\n")
    return 1 if failed else 0


def run_clients(python: Path, url: str) -> Iterator[Verdict]:
    """Every official client, in its own process."""
    env = os.environ | {"CLIENT_URL": url, "CLIENT_KEY": KEY}
    _, output = _capture([python, HERE / "with_sdks.py"], env)
    reports = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if not reports:
        yield "clients", "they did not start"
    for report in reports:
        yield report["check"], report["fault"]


def run_conformance(python: Path, url: str, key: str | None) -> Iterator[Verdict]:
    """The public suite; every requirement that it tested is a check of ours."""
    name = "jevcompat" if key is None else "jevcompat with a key"
    file = prepare().parents[2] / "jevcompat.json"
    file.unlink(missing_ok=True)
    words = [python.with_name("jevcompat"), "test", url, "--json", file, "--timeout", "30"]
    code, _ = _capture([*words, *(["--key", key] if key else [])], dict(os.environ))
    if not file.exists():
        yield name, "there is no report"
        return
    report = json.loads(file.read_text())
    yield name, None if code == 0 else f"it is not conformant ({code})"
    for row in report["results"]:
        if row["status"] != "skip":
            fault = None if row["status"] == "pass" else f"{row['status']}: {row['title']}"
            yield f"{name}: {row['level']} {row['id']}", fault


def prepare() -> Path:
    """The interpreter of an environment with exactly these versions."""
    digest = hashlib.sha256((HERE / "requirements.txt").read_bytes()).hexdigest()
    home = ROOT / ".cache" / "decisions" / digest[:12] / "venv"
    python = home / "bin" / "python"
    if not (home / ".ready").exists():
        venv.create(home, with_pip=True, clear=True)
        words = ("install", "-q", "--require-hashes", "-r", HERE / "requirements.txt")
        subprocess.run([str(w) for w in (python, "-m", "pip", *words)], check=True)
        (home / ".ready").touch()
    return python


def _capture(words: list[object], env: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        [str(word) for word in words],
        env=env,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode:
        sys.stdout.write((done.stderr or done.stdout)[-4000:])
    return done.returncode, done.stdout


if __name__ == "__main__":
    sys.exit(main())
