"""A gateway that is killed loses no more than the rows of its last flush interval."""

import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

KILLS = 50
FLUSH_SECONDS = 0.2
WRITE_SECONDS = 0.1
"""What a busy machine may add: the test runs beside others."""

VICTIM = """
import asyncio, os, signal, sys, time
import proxy.ledger.pump  # so that each life begins warm
from proxy.ledger.status import Options
from proxy.ledger.writer import SqlLedger
from tests.fakes.lines import row

async def live(life):
    ledger = SqlLedger(sys.argv[1], Options(flush_seconds=float(sys.argv[2])))
    await ledger.start()
    number = 0
    while True:
        for _ in range(10):
            ledger.record(row(request_id=f"{life}-{number}"))
            number += 1
        os.write(1, f"{life} {number} {time.monotonic()}\\n".encode())
        await asyncio.sleep(0.002)

for line in sys.stdin:
    if (child := os.fork()) == 0:
        asyncio.run(live(int(line)))
    time.sleep(0.25 + float(sys.argv[3]) * int(line) / 100)
    os.kill(child, signal.SIGKILL)
    killed = time.monotonic()
    os.waitpid(child, 0)
    os.write(1, f"killed {line.strip()} {killed}\\n".encode())
"""


@pytest.mark.slow
def test_fifty_kills_under_load(tmp_path: Path) -> None:
    """Every row acknowledged before the interval is there, once, in a sound database."""
    file = tmp_path / "usher.db"
    url = f"sqlite+aiosqlite:///{file}"
    done = subprocess.run(
        [sys.executable, "-c", VICTIM, url, str(FLUSH_SECONDS), str(random.uniform(0.2, 0.6))],
        input="".join(f"{life}\n" for life in range(KILLS)).encode(),
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        timeout=180,
    )
    acknowledged: dict[int, list[tuple[int, float]]] = {}
    killed: dict[int, float] = {}
    for line in done.stdout.decode().splitlines():
        first, second, at = line.split()
        if first == "killed":
            killed[int(second)] = float(at)
        else:
            acknowledged.setdefault(int(first), []).append((int(second), float(at)))
    assert len(killed) == len(acknowledged) == KILLS
    with sqlite3.connect(file) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        found = [name for (name,) in database.execute("SELECT request_id FROM usher_calls")]
    database.close()
    assert len(found) == len(set(found))
    there = set(found)
    for life, end in killed.items():
        promised = end - FLUSH_SECONDS - WRITE_SECONDS
        safe = max((count for count, moment in acknowledged[life] if moment <= promised), default=0)
        assert {f"{life}-{number}" for number in range(safe)} <= there
    assert len(found) > 1000
