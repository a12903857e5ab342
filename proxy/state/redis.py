"""What several processes share, in a Redis or Valkey; every call has a deadline.

After a failure nothing is asked for a moment, so that a server which hangs costs one wait and not
one per request. The log says when it is gone and when it is back; the metrics count every failure.
"""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import redis
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from structlog.typing import FilteringBoundLogger

from proxy.errors import ConfigError, Unavailable
from proxy.observe.metrics import Metrics, StateUse
from proxy.settings import State

MOST_CONNECTIONS = 32
REST_SECONDS = 1.0
START_SECONDS = 3.0

Found = TypeVar("Found")


class StateDown(Unavailable):
    """The shared store gave no answer in time."""


class Link:
    """The way to the server that the settings name."""

    def __init__(
        self,
        settings: State,
        log: FilteringBoundLogger,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = settings.timeout_ms / 1000
        self._log = log
        self._failures = metrics.upkeep.state_failures
        self._clock = clock
        self._rest_until = 0.0
        self._down = False
        self.prefix = settings.prefix
        self._redis = connect(settings)

    async def ask(self, use: StateUse, question: Callable[[Any], Awaitable[Found]]) -> Found:
        """What the server answers. Raises StateDown."""
        if self.resting:
            self.miss(use)
            raise StateDown("The shared store is not there.", retry_after=REST_SECONDS)
        try:
            async with asyncio.timeout(self._seconds):
                answer = await question(self._redis)
        except (redis.RedisError, OSError) as error:
            self._fail(use, type(error).__name__)
            raise StateDown("The shared store is not there.", retry_after=REST_SECONDS) from None
        if self._down:
            self._down = False
            self._log.info("state_back")
        return answer

    async def run(self, use: StateUse, script: str, keys: Sequence[str], text: bytes) -> list[Any]:
        """What a Lua script answers; the server keeps it by its hash. Raises StateDown."""
        digest = hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()

        async def evaluate(server: Any) -> list[Any]:
            try:
                found: list[Any] = await server.evalsha(digest, len(keys), *keys, text)
            except redis.exceptions.NoScriptError:
                found = await server.eval(script, len(keys), *keys, text)
            return found

        return await self.ask(use, evaluate)

    @property
    def rest_seconds(self) -> float:
        """How long it still rests."""
        return max(0.0, self._rest_until - self._clock())

    @property
    def resting(self) -> bool:
        """Whether it failed a moment ago, so that nothing is asked."""
        return self._clock() < self._rest_until

    def miss(self, use: StateUse) -> None:
        """Count what was not even asked."""
        self._failures.add(use)

    async def aclose(self) -> None:
        """Lets go of the connections."""
        await self._redis.aclose()

    def _fail(self, use: StateUse, reason: str) -> None:
        self._failures.add(use)
        self._rest_until = self._clock() + REST_SECONDS
        if not self._down:
            self._down = True
            self._log.error("state_down", use=use, reason=reason)


class RedisStore:
    """The Store of several processes; a failure is as if nothing was there."""

    def __init__(self, link: Link, ttl_seconds: int) -> None:
        self._link = link
        self._ttl = ttl_seconds

    async def get(self, tenant: str, key: str) -> bytes | None:
        """The value, or None when it was never put, expired or cannot be had."""
        return (await self.get_many(tenant, [key])).get(key)

    async def get_many(self, tenant: str, keys: Sequence[str]) -> dict[str, bytes]:
        """The values of those keys that are there, in one round trip."""
        if not keys:
            return {}
        places = [self._place(tenant, key) for key in keys]
        try:
            found = await self._link.ask("store", lambda server: server.mget(places))
        except StateDown:
            return {}
        pairs = zip(keys, found, strict=True)
        return {key: value for key, value in pairs if value is not None}

    async def put(self, tenant: str, key: str, value: bytes) -> None:
        """Keeps a value for the store's time to live."""
        place = self._place(tenant, key)
        try:
            await self._link.ask("store", lambda server: server.set(place, value, ex=self._ttl))
        except StateDown:
            return

    async def put_if_absent(self, tenant: str, key: str, value: bytes) -> bytes:
        """Keeps a value unless there is one; returns the one that is there now."""
        place = self._place(tenant, key)
        try:
            first = await self._link.ask(
                "store", lambda server: server.set(place, value, ex=self._ttl, nx=True)
            )
        except StateDown:
            return value
        return value if first else await self.get(tenant, key) or value

    def _place(self, tenant: str, key: str) -> str:
        """No two pairs of tenant and key are the same place, whatever letters they have."""
        return f"{self._link.prefix}:store:{len(tenant)}:{tenant}:{key}"


def connect(settings: State) -> Redis:
    """A client that has not connected yet. Raises ConfigError for a URL that cannot be used.

    It has no timeouts of its own: on Python 3.11 they swallow cancellations. Who asks has one.
    """
    url = settings.url or ""
    if urlsplit(url).scheme not in {"redis", "rediss", "unix"}:
        raise ConfigError("state.url: use redis://, rediss:// or unix://", param="state.url")
    try:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=MOST_CONNECTIONS,
            timeout=None,
            socket_timeout=None,
            socket_connect_timeout=None,
            retry=Retry(NoBackoff(), 1, (redis.ConnectionError,)),
        )
    except ValueError as error:
        raise ConfigError(f"state.url: {error}", param="state.url") from None
    return Redis.from_pool(pool)


async def check_state(settings: State) -> None:
    """Ask the server once. Raises ConfigError when it is not there or lets us not in."""
    client = connect(settings)
    try:
        async with asyncio.timeout(START_SECONDS):
            await client.ping()
    except TimeoutError:
        raise ConfigError(
            f"state.url: no answer in {START_SECONDS:.0f} s", param="state.url"
        ) from None
    except (redis.RedisError, OSError) as error:
        place = urlsplit(settings.url or "").hostname or "the socket"
        reason = str(error).split("\n")[0].rstrip(".")
        raise ConfigError(f"state.url: {place}: {reason}", param="state.url") from None
    finally:
        await client.aclose()
