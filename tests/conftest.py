"""Every test starts with asyncio, an empty folder for data and no settings from the environment."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.redisserver import RedisServer, find_redis

FOREIGN = ("USHER_", "OPENAI_", "ANTHROPIC_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.upper().startswith(FOREIGN):
            monkeypatch.delenv(name)
    monkeypatch.setenv("USHER_DATA", str(tmp_path / "usher-data"))


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis that runs, and knows nothing yet."""
    server = RedisServer(find_redis(), tmp_path)
    server.start()
    yield server
    server.stop()
