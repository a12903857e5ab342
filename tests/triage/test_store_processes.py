"""Plans of several worker processes that share a Redis."""

import subprocess
import sys
from pathlib import Path

import orjson

from tests.fakes.redisserver import RedisServer

ROOT = Path(__file__).resolve().parent.parent.parent


def test_two_processes_that_race_commit_one_plan(redis_server: RedisServer) -> None:
    """Whatever each of them decided, both send the same bytes from the next request on."""
    rounds = 12
    words = [sys.executable, "-m", "tests.triage.racer", redis_server.url]
    workers = [
        subprocess.Popen([*words, name, str(rounds)], cwd=ROOT, stdout=subprocess.PIPE)
        for name in ("one", "two")
    ]
    one, two = (orjson.loads(worker.communicate(timeout=120)[0]) for worker in workers)
    assert len(one) == rounds
    assert one == two
    assert all("Noted by" in sent for sent in one)
