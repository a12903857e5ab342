"""An upstream's address comes in; a gateway started the way a user starts it goes out."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USHER = Path(sys.executable).with_name("usher")
STOP_SECONDS = 10


@contextmanager
def usher(upstream: str, **environ: str) -> Iterator[str]:
    """`usher serve` on a free port, in an empty folder; gives its base URL."""
    with tempfile.TemporaryDirectory() as folder:
        env = {k: v for k, v in os.environ.items() if not k.startswith(("USHER_", "OPENAI_"))}
        env |= {
            "OPENAI_BASE_URL": upstream,
            "USHER_DATA": folder,
            "USHER_LOG__LEVEL": "error",
            **environ,
        }
        words = [str(USHER), "serve", "--port", "0", "--json"]
        with stopped(
            subprocess.Popen(words, env=env, cwd=folder, stdout=subprocess.PIPE)
        ) as server:
            assert server.stdout
            line = server.stdout.readline()
            if not line:
                raise SystemExit("usher did not start")
            yield json.loads(line)["url"]


@contextmanager
def stopped(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """The process, ended afterwards whatever happened."""
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()
