"""Limits hold over all processes that share a store, and nobody enters when it is away."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest

from proxy.keys.key import GatewayKey, Limits, new_secret
from proxy.keys.limiter import FREE, Lease
from proxy.keys.refusal import BudgetSpent, LimitReached, LimitsUnavailable
from proxy.keys.shared import SharedLimiter
from proxy.observe.log import silent
from proxy.observe.metrics import Metrics
from proxy.settings import State
from proxy.state.redis import Link
from tests.fakes.lines import NOON, row
from tests.fakes.redisserver import RedisServer
from tests.fakes.until import until

pytestmark = pytest.mark.anyio

DAY = 86_400


@dataclass
class World:
    """Processes that share a server; `clock` None is the server's own."""

    server: RedisServer
    clock: float | None = None
    wall: float = NOON
    ledger: list[tuple[str, int, int]] = field(default_factory=list)
    metrics: Metrics = field(default_factory=Metrics)
    asked: int = 0

    def process(self) -> tuple[SharedLimiter, Link]:
        """One more of them."""
        state = State(url=self.server.url, timeout_ms=2000)
        link = Link(state, silent(), self.metrics)

        async def spendings(_: float) -> Sequence[tuple[str, int, int]]:
            self.asked += 1
            return self.ledger

        return SharedLimiter(link, spendings, lambda: self.wall, lambda: self.clock), link

    @asynccontextmanager
    async def processes(self, number: int = 2) -> AsyncIterator[list[SharedLimiter]]:
        """As gateways run them."""
        made = [self.process() for _ in range(number)]
        async with asyncio.TaskGroup() as group:
            watches = [group.create_task(limiter.watch()) for limiter, _ in made]
            try:
                yield [limiter for limiter, _ in made]
            finally:
                for watch in watches:
                    watch.cancel()
        for limiter, link in made:
            await limiter.aclose()
            await link.aclose()


@pytest.fixture
def world(redis_server: RedisServer) -> World:
    return World(redis_server)


def key(name: str = "alice", **limits: int) -> GatewayKey:
    return GatewayKey(name, new_secret()[1], 0.0, limits=Limits(**limits))


async def race(
    limiters: Sequence[SharedLimiter], limited: GatewayKey, requests: int = 100
) -> list[Lease]:
    """Many requests at once, spread over the processes; the leases of those that were let in."""
    leases: list[Lease] = []

    async def ask(limiter: SharedLimiter) -> None:
        with suppress(LimitReached):
            leases.append(await limiter.admit(limited, 10))

    async with asyncio.TaskGroup() as tasks:
        for number in range(requests):
            tasks.create_task(ask(limiters[number % len(limiters)]))
    return leases


@pytest.mark.parametrize(
    ("limits", "through"),
    [
        (Limits(rpm=17), 17),
        (Limits(concurrent=5), 5),
        (Limits(tpm=95), 9),
        (Limits(rpm=9, tpm=30), 3),
        (Limits(rpm=9, budget_day=1), 9),
    ],
)
async def test_a_hundred_requests_at_the_limit(world: World, limits: Limits, through: int) -> None:
    """Exactly the limit gets in, over both processes."""
    limited = GatewayKey("alice", new_secret()[1], 0.0, limits=limits)
    async with world.processes() as limiters:
        assert len(await race(limiters, limited)) == through
    assert world.asked in ({1, 2} if limits.budget_day else {0})  # once per process at most


async def test_places_come_back(world: World) -> None:
    """In the process that gave it back at once, in another one a moment later; never twice."""
    limited = key(concurrent=2)
    async with world.processes() as (one, other):
        first, second = await one.admit(limited), await other.admit(limited)
        with pytest.raises(LimitReached, match="2 requests running at once"):
            await other.admit(limited)
        first.leave()
        first.leave()
        await one.admit(limited)
        with pytest.raises(LimitReached):
            await one.admit(limited)
        second.leave()
        await one.admit(limited)


async def test_the_place_of_a_killed_process_comes_back(world: World) -> None:
    """When its lease ends, while those that run are renewed."""
    limited, world.clock = key(concurrent=2), 1000.0
    killed, link = world.process()
    await killed.admit(limited, 10)
    await link.aclose()
    async with world.processes(1) as (one,):
        await one.admit(limited, 10)
        world.clock += 20
        await one._settle(renew=True)
        with pytest.raises(LimitReached):
            await one.admit(limited)
        world.clock += 11
        await one.admit(limited)
        with pytest.raises(LimitReached):
            await one.admit(limited)


async def test_a_minute_later_there_is_room(world: World) -> None:
    """And `retry_after` said when; the client hears of both."""
    limited, world.clock = key(rpm=2, tpm=100), 1000.0
    async with world.processes() as (one, other):
        headers = dict((await one.admit(limited, 30)).headers)
        assert headers[b"x-ratelimit-remaining-requests"] == b"1"
        assert headers[b"x-ratelimit-reset-requests"] == b"60s"
        assert headers[b"x-ratelimit-remaining-tokens"] == b"70"
        await other.admit(limited)
        with pytest.raises(LimitReached) as caught:
            await other.admit(limited)
        assert caught.value.retry_after == 60
        world.clock += 59.9
        with pytest.raises(LimitReached):
            await one.admit(limited)
        world.clock += 0.2
        await one.admit(limited)


async def test_tokens_count_when_they_are_reported(world: World) -> None:
    """The estimate is reserved until then, and given back; in every process."""
    limited = key(tpm=1000)
    async with world.processes() as (one, other):
        lease = await one.admit(limited, 900)
        with pytest.raises(LimitReached, match="used 900, this request needs about 200"):
            await other.admit(limited, 200)
        one.charge(row(prompt_tokens=100, completion_tokens=50))
        lease.leave()
        (await one.admit(limited, 800)).leave()
        with pytest.raises(LimitReached, match="used 150"):
            await one.admit(limited, 900)
        with pytest.raises(LimitReached) as caught:
            await other.admit(limited, 1001)
        assert (b"x-should-retry", b"false") in caught.value.headers


async def test_a_budget_is_one_budget(world: World) -> None:
    """What one process spends, another one knows; tomorrow is another day."""
    limited = key(budget_day=1000, budget_month=10**15)
    async with world.processes() as (one, other):
        (await one.admit(limited)).leave()
        one.charge(row(cost_nano_usd=400))
        one.charge(row(cost_nano_usd=600))
        await one._settle(renew=False)
        with pytest.raises(BudgetSpent, match="for this day is spent") as caught:
            await other.admit(limited)
        world.wall += caught.value.retry_after or 0
        await other.admit(limited)
        one.charge(row(cost_nano_usd=10**15))
        await one._settle(renew=False)
        with pytest.raises(BudgetSpent, match="for this month"):
            await other.admit(limited)


async def test_a_store_that_forgot_asks_the_ledger(world: World) -> None:
    """A restart of the server refills no budget, and what was spent meanwhile counts once."""
    limited, day = key(budget_day=1000), int(NOON // DAY)
    async with world.processes() as (one, other):
        (await one.admit(limited)).leave()
        one.charge(row(cost_nano_usd=999))
        await one._settle(renew=False)
        await other.admit(limited)
        world.server.stop()
        world.server.start()
        world.ledger += [("alice", day, 999), ("bob", day, 5)]
        await other.admit(limited)
        one.charge(row(cost_nano_usd=1))
        await one._settle(renew=False)
        with pytest.raises(BudgetSpent):
            await other.admit(limited)


@pytest.mark.parametrize("jump", [-3600.0, -1.5])
async def test_a_servers_clock_that_steps_back(world: World, jump: float) -> None:
    """Nothing is forgotten, nothing counts longer than a minute."""
    limited, world.clock = key(rpm=2, concurrent=2), 100_000.0
    async with world.processes(1) as (one,):
        await one.admit(limited)
        world.clock += 10
        (await one.admit(limited)).leave()
        world.clock += jump
        with pytest.raises(LimitReached) as caught:
            await one.admit(limited)
        assert 49 <= (caught.value.retry_after or 0) <= 60
        world.clock += caught.value.retry_after or 0
        await one.admit(limited)
        with pytest.raises(LimitReached):
            await one.admit(limited)


async def test_a_servers_clock_that_jumps_ahead(world: World) -> None:
    """Running requests are counted again with the next renewal."""
    limited, world.clock = key(concurrent=1), 1000.0
    async with world.processes(1) as (one,):
        await one.admit(limited, 7)
        world.clock += 3600
        await one._settle(renew=True)
        with pytest.raises(LimitReached):
            await one.admit(limited)


async def test_a_workers_clock_changes_no_rate(world: World) -> None:
    """Only the server's clock counts for rates."""
    limited = key(rpm=1, budget_day=1000)
    async with world.processes() as (one, other):
        await one.admit(limited)
        for jump in (-10 * DAY, 20 * DAY):
            world.wall += jump
            with pytest.raises(LimitReached, match="requests per minute"):
                await other.admit(limited)


async def test_without_the_store_nobody_with_limits_enters(world: World) -> None:
    """A 503 that says when to come back; keys without limits are served all the while."""
    limited = key(rpm=100, budget_day=1000)
    async with world.processes(1) as (one,):
        lease = await one.admit(limited)
        world.server.stop()
        for _ in range(3):
            with pytest.raises(LimitsUnavailable) as caught:
                await one.admit(limited)
            assert caught.value.status == 503
            assert caught.value.retry_after
        assert await one.admit(key("bob")) is FREE
        one.charge(row(cost_nano_usd=1000))
        lease.leave()
        world.server.start()
        await until(lambda: not one._link.resting)
        await _spent(one, limited)
    failures = world.metrics.registry.get_sample_value(
        "usher_state_failures_total", {"use": "limits"}
    )
    assert failures is not None
    assert failures >= 3


async def _spent(limiter: SharedLimiter, limited: GatewayKey) -> None:
    """What was spent while the store was away is said when it is back."""
    for _ in range(200):
        try:
            (await limiter.admit(limited)).leave()
        except BudgetSpent:
            return
        except LimitReached:
            raise
        except LimitsUnavailable:
            await asyncio.sleep(0.02)
    raise AssertionError("the budget was refilled")


async def test_a_server_that_hangs_costs_one_wait(world: World) -> None:
    """Its deadline once, then nothing is asked for a moment."""
    limited = key(rpm=100)
    async with world.processes(1) as (one,):
        await one.admit(limited)
        one._link._seconds = 0.1
        world.server.freeze()
        loop = asyncio.get_running_loop()
        began = loop.time()
        for _ in range(50):
            with pytest.raises(LimitsUnavailable):
                await one.admit(limited)
        assert loop.time() - began < 1
        world.server.thaw()


async def test_who_leaves_while_asking_takes_no_place(world: World) -> None:
    """A request that is cancelled before the answer came gives back what it may have got."""
    limited = key(concurrent=1)
    async with world.processes() as (one, other):
        asking = asyncio.get_running_loop().create_task(one.admit(limited))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asking.cancel()
        with suppress(asyncio.CancelledError):
            (await asking).leave()
        await _admitted(lambda: other.admit(limited))


async def _admitted(ask: Callable[[], object]) -> None:
    for _ in range(50):
        try:
            await ask()  # type: ignore[misc] # a coroutine of admit
        except LimitReached:
            await asyncio.sleep(0.02)
        else:
            return
    raise AssertionError("the place never came back")
