"""A store that several processes share, and that may be away."""

import asyncio
import io
import json
from collections.abc import AsyncIterator

import pytest

from proxy.errors import ConfigError
from proxy.observe.log import configure
from proxy.observe.metrics import Metrics
from proxy.settings import Log, State
from proxy.state.redis import Link, RedisStore, StateDown, check_state, connect
from tests.fakes.redisserver import RedisServer
from tests.fakes.until import until

pytestmark = pytest.mark.anyio


class Process:
    """One of those that share the server."""

    def __init__(self, server: RedisServer, ttl: int = 60, timeout_ms: int = 2000) -> None:
        self.metrics, self.out = Metrics(), io.StringIO()
        log = configure(Log(format="json"), self.out)
        self.link = Link(State(url=server.url, timeout_ms=timeout_ms), log, self.metrics)
        self.store = RedisStore(self.link, ttl)

    def events(self) -> list[str]:
        """What it logged."""
        return [json.loads(line)["event"] for line in self.out.getvalue().splitlines()]

    def failures(self) -> float | None:
        """How often the store was missed."""
        return self.metrics.registry.get_sample_value(
            "usher_state_failures_total", {"use": "store"}
        )


@pytest.fixture
async def process(redis_server: RedisServer) -> AsyncIterator[Process]:
    one = Process(redis_server)
    yield one
    await one.link.aclose()


async def test_what_one_process_puts_another_gets(
    redis_server: RedisServer, process: Process
) -> None:
    """And no other tenant does, whatever letters its name has."""
    other = Process(redis_server)
    await process.store.put("a", "k", b"\x00value")
    await process.store.put("a", "other", b"2")
    assert await other.store.get("a", "k") == b"\x00value"
    assert await other.store.get_many("a", ["k", "none", "other"]) == {
        "k": b"\x00value",
        "other": b"2",
    }
    assert await other.store.get_many("a", []) == {}
    await process.store.put("a:b", "c", b"1")
    assert await other.store.get("a", "b:c") is None
    await other.link.aclose()


async def test_the_first_one_stays(redis_server: RedisServer, process: Process) -> None:
    """Two processes that decide the same thing at once end with one decision."""
    other = Process(redis_server)
    values = await asyncio.gather(
        *(one.store.put_if_absent("a", "k", name) for one, name in ((process, b"1"), (other, b"2")))
    )
    assert values[0] == values[1]
    assert await process.store.get("a", "k") == values[0]
    await other.link.aclose()


async def test_values_expire(redis_server: RedisServer) -> None:
    """After the store's time to live."""
    process = Process(redis_server, ttl=1)
    await process.store.put("a", "k", b"1")
    assert await process.store.get("a", "k") == b"1"
    await asyncio.sleep(1.1)
    assert await process.store.get("a", "k") is None
    await process.link.aclose()


async def test_a_store_that_is_away_is_empty(redis_server: RedisServer, process: Process) -> None:
    """No error, one line when it goes and one when it is back, and a count."""
    await process.store.put("a", "k", b"1")
    redis_server.stop()
    assert await process.store.get("a", "k") is None
    assert await process.store.put_if_absent("a", "k", b"2") == b"2"
    await process.store.put("a", "k", b"3")
    assert process.failures() == 3
    assert process.events() == ["state_down"]
    redis_server.start()
    await until(lambda: not process.link.resting)
    await process.store.put("a", "k", b"4")
    assert await process.store.get("a", "k") == b"4"
    assert process.events() == ["state_down", "state_back"]


async def test_one_that_hangs_has_a_deadline(redis_server: RedisServer) -> None:
    """Each process waits for it once, and not again for a moment."""
    process = Process(redis_server, timeout_ms=100)
    redis_server.freeze()
    loop = asyncio.get_running_loop()
    began = loop.time()
    for _ in range(20):
        with pytest.raises(StateDown):
            await process.link.ask("store", lambda server: server.ping())
    assert 0.09 < loop.time() - began < 1
    redis_server.thaw()
    await process.link.aclose()


async def test_the_server_is_asked_once_at_the_start(redis_server: RedisServer) -> None:
    """One that is not there stops the start; its password is not in the message."""
    await check_state(State(url=redis_server.url))
    redis_server.stop()
    url = redis_server.url.replace("//", "//:s3cret@")
    with pytest.raises(ConfigError, match=r"state\.url: 127\.0\.0\.1: ") as caught:
        await check_state(State(url=url))
    assert "s3cret" not in caught.value.message


@pytest.mark.parametrize("url", ["http://127.0.0.1", "localhost:6379", "redis://h:port"])
def test_a_url_of_something_else(url: str) -> None:
    """Is said at the start."""
    with pytest.raises(ConfigError, match=r"state\.url: "):
        connect(State(url=url))
