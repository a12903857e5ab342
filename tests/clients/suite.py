"""Runs real client libraries through the gateway: library → Usher → stand-in model.

Each library gets 235 tools and a task for two of them, streaming and not. What it reports is
judged here; so is what the upstream received meanwhile.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxy.demo.catalogue import load_tools
from proxy.upstream.standin import Received
from tests.clients.upstream import standin
from tests.conformance.served import usher

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CLIENTS = (
    "with_openai.py",
    "with_agents.py",
    "with_pydantic_ai.py",
    "with_langchain.py",
    "with_openai.mjs",
    "with_ai_sdk.mjs",
)
PROMPT = "List the storage accounts in my subscription, then show the secrets in key vault kv-prod"
EXPECTED = ["storage_account_get", "keyvault_secret_get"]
MOST_TOOLS = 40
"""Far fewer than 235; how few exactly is measured elsewhere."""
TIMEOUT_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Kit:
    """What the clients run with."""

    python: Path
    scripts: Path
    env: dict[str, str]


def main() -> int:
    """Prepare, run every client, report; 0 when all passed."""
    cache = find_cache()
    python, scripts = prepare_python(cache), prepare_node(cache)
    tools = cache / "tools.json"
    tools.write_text(json.dumps(load_tools()))
    verdicts: list[tuple[str, list[str]]] = []
    with standin() as (upstream, script), usher(upstream) as url:
        env = {"CLIENT_URL": url, "CLIENT_PROMPT": PROMPT, "CLIENT_TOOLS": str(tools)}
        kit = Kit(python, scripts, os.environ | env)
        for client in CLIENTS:
            before = len(script.received)
            output = _run_client(kit, client)
            verdicts += _judge(client, output, script.received[before:])
    for name, faults in verdicts:
        sys.stdout.write(f"{name:28} {'; '.join(faults) or 'ok'}\n")
    failed = sum(bool(faults) for _, faults in verdicts)
    sys.stdout.write(f"clients: {len(verdicts) - failed} passed, {failed} failed\n")
    return 1 if failed else 0


def _run_client(kit: Kit, client: str) -> str:
    """The client's report, or what went wrong."""
    interpreter = kit.python if client.endswith(".py") else "node"
    try:
        done = subprocess.run(
            [interpreter, kit.scripts / client],
            env=kit.env,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ""
    if done.returncode:
        sys.stdout.write(done.stderr[-3000:])
    return done.stdout


def _judge(
    client: str, output: str, received: Sequence[Received]
) -> Iterator[tuple[str, list[str]]]:
    """A verdict per mode; what the upstream received is judged with both."""
    reports = {r["mode"]: r for r in map(json.loads, output.splitlines())}
    upstream_faults = list(_find_upstream_faults(received))
    for mode in ("plain", "stream"):
        faults = [*_find_faults(reports.get(mode)), *upstream_faults]
        yield f"{client} {mode}", faults


def _find_faults(report: dict[str, Any] | None) -> Iterator[str]:
    if report is None:
        yield "it did not finish"
        return
    if report["called"] != EXPECTED:
        yield f"it called {report['called']}"
    if not all(f"{name} returned" in str(report["answer"]) for name in EXPECTED):
        yield f"it answered {report['answer']!r}"
    if report["leaked"]:
        yield "it saw tool_search"
    if not report["tokens"]:
        yield "it got no usage"
    if not report["events"]:
        yield "it saw no event"


def _find_upstream_faults(received: Sequence[Received]) -> Iterator[str]:
    most = max((len(request.tool_names) for request in received), default=0)
    if not 0 < most <= MOST_TOOLS:
        yield f"the upstream received {most} tools"
    if not any("tool_search" in request.tool_names for request in received):
        yield "nothing was deferred"


def find_cache() -> Path:
    """A folder that belongs to these exact versions."""
    names = ("requirements.txt", "package-lock.json")
    digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in names)).hexdigest()
    folder = ROOT / ".cache" / "clients" / digest[:12]
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def prepare_python(cache: Path) -> Path:
    """The interpreter of an environment that has the Python libraries."""
    home = cache / "venv"
    python = home / "bin" / "python"
    if not (home / ".ready").exists():
        venv.create(home, with_pip=True, clear=True)
        words = ("install", "-q", "--require-hashes", "-r", HERE / "requirements.txt")
        _run(python, "-m", "pip", *words)
        (home / ".ready").touch()
    return python


def prepare_node(cache: Path) -> Path:
    """A folder with the JavaScript libraries and, next to them, a copy of all scripts."""
    home = cache / "node"
    home.mkdir(exist_ok=True)
    patterns = ("package*.json", "with_*", "task.*", "memory_*")
    for file in (file for pattern in patterns for file in HERE.glob(pattern)):
        shutil.copy(file, home)
    if not (home / ".ready").exists():
        _run("npm", "ci", "--silent", "--no-audit", "--no-fund", cwd=home)
        (home / ".ready").touch()
    return home


def _run(*words: object, cwd: Path | None = None) -> None:
    subprocess.run([str(word) for word in words], cwd=cwd, check=True)


if __name__ == "__main__":
    sys.exit(main())
