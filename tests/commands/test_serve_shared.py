"""Limits over real worker processes, and their store as it comes and goes."""

import json
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from proxy import cli
from proxy.keys.issue import new_key
from proxy.keys.key import GatewayKey, Limits
from tests.commands.conftest import Launch, Running, eventually
from tests.fakes.redisserver import RedisServer

_BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()


def _make(folder: Path, name: str, **limits: int) -> str:
    def wanted(key: GatewayKey) -> GatewayKey:
        return msgspec.structs.replace(key, limits=Limits(**limits))

    return new_key(folder / "data" / "keys.json", wanted, name)


def _launch(launch: Launch, folder: Path, server: RedisServer) -> Running:
    config = folder / "usher.yaml"
    config.write_text(f"state:\n  url: {server.url}\n  timeout_ms: 10000\n")
    return launch("--workers", "2", "--config", str(config))


def _ask(running: Running, secret: str) -> tuple[int, str | None]:
    """The status of a chat request and its `retry-after`."""
    request = urllib.request.Request(
        f"{running.url}/v1/chat/completions",
        data=_BODY,
        headers={"content-type": "application/json", "authorization": f"Bearer {secret}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return int(reply.status), None
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["retry-after"]


def test_a_hundred_requests_at_the_limit(
    launch: Launch, tmp_path: Path, redis_server: RedisServer
) -> None:
    """Exactly the limit gets through two workers, whichever of them is asked."""
    secret = _make(tmp_path, "alice", rpm=17)
    running = _launch(launch, tmp_path, redis_server)
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: _ask(running, secret), range(100)))
    statuses = [status for status, _ in answers]
    assert (statuses.count(200), statuses.count(429)) == (17, 83)
    assert all(1 <= int(after) <= 60 for _, after in answers if after is not None)


def test_its_store_goes_and_comes_back(
    launch: Launch, tmp_path: Path, redis_server: RedisServer
) -> None:
    """Meanwhile keys with limits are refused with the time to come back, others are served."""
    limited, free = _make(tmp_path, "alice", concurrent=2), _make(tmp_path, "bob")
    running = _launch(launch, tmp_path, redis_server)
    for _ in range(5):
        assert _ask(running, limited)[0] == 200
    redis_server.stop()
    assert _ask(running, limited) == (503, "1")
    assert _ask(running, free)[0] == 200
    assert "state_down" in running.events()
    redis_server.start()
    eventually(lambda: _ask(running, limited)[0] == 200 and "state_back" in running.events())


def test_a_store_that_is_not_there_stops_the_start(
    tmp_path: Path, redis_server: RedisServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line, before anything listens."""
    redis_server.stop()
    config = tmp_path / "usher.yaml"
    config.write_text(f"state:\n  url: {redis_server.url}\n")
    assert cli.run(["serve", "--port", "0", "--config", str(config)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("usher: state.url: 127.0.0.1: ")
    assert error.count("\n") == 1
