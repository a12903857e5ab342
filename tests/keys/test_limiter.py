"""Limits let exactly as much through as they say, whatever races, clocks and endings do."""

import asyncio

import pytest

from proxy.errors import ConfigError, Forbidden
from proxy.keys.key import GatewayKey, Limits, new_secret
from proxy.keys.limiter import (
    FREE,
    Lease,
    Limiter,
    check_model,
    check_workers,
)
from proxy.keys.refusal import BudgetSpent, LimitReached
from tests.fakes.lines import NOON, row

pytestmark = pytest.mark.anyio

DAY = 86_400


class Clock:
    """Both clocks, set by hand."""

    def __init__(self) -> None:
        self.monotonic = 1000.0
        self.wall = NOON

    def limiter(self) -> Limiter:
        return Limiter(lambda: self.monotonic, lambda: self.wall)


def key(name: str = "alice", **limits: int) -> GatewayKey:
    return GatewayKey(name, new_secret()[1], 0.0, limits=Limits(**limits))


async def race(limiter: Limiter, limited: GatewayKey, requests: int = 100) -> list[Lease]:
    """Many requests at once; the leases of those that were let in."""
    leases: list[Lease] = []

    async def ask() -> None:
        await asyncio.sleep(0)
        try:
            leases.append(limiter.enter(limited, 10))
        except LimitReached:
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(requests):
            tasks.create_task(ask())
    return leases


@pytest.mark.parametrize(
    ("limits", "through"),
    [
        (Limits(rpm=17), 17),
        (Limits(concurrent=5), 5),
        (Limits(tpm=95), 9),
        (Limits(rpm=9, tpm=30), 3),
    ],
)
async def test_a_hundred_requests_at_the_limit(limits: Limits, through: int) -> None:
    """Exactly the limit gets in."""
    limited = GatewayKey("alice", new_secret()[1], 0.0, limits=limits)
    assert len(await race(Clock().limiter(), limited)) == through


async def test_places_come_back_once() -> None:
    """Ending a request twice does not make room for two."""
    limiter, limited = Clock().limiter(), key(concurrent=2)
    first, _ = limiter.enter(limited), limiter.enter(limited)
    first.leave()
    first.leave()
    limiter.enter(limited)
    with pytest.raises(LimitReached, match="2 requests running at once"):
        limiter.enter(limited)


async def test_a_minute_later_there_is_room() -> None:
    """And `retry_after` said when."""
    clock = Clock()
    limiter, limited = clock.limiter(), key(rpm=1)
    limiter.enter(limited).leave()
    with pytest.raises(LimitReached) as caught:
        limiter.enter(limited)
    assert caught.value.retry_after == 60
    clock.monotonic += caught.value.retry_after - 0.01
    with pytest.raises(LimitReached):
        limiter.enter(limited)
    clock.monotonic += 0.02
    limiter.enter(limited)


async def test_headers_as_openai_sends_them() -> None:
    """With the answer and with the refusal."""
    clock = Clock()
    limiter, limited = clock.limiter(), key(rpm=2, tpm=100)
    headers = dict(limiter.enter(limited, 30).headers)
    assert headers == {
        b"x-ratelimit-limit-requests": b"2",
        b"x-ratelimit-remaining-requests": b"1",
        b"x-ratelimit-reset-requests": b"60s",
        b"x-ratelimit-limit-tokens": b"100",
        b"x-ratelimit-remaining-tokens": b"70",
        b"x-ratelimit-reset-tokens": b"0s",
    }
    limiter.enter(limited)
    with pytest.raises(LimitReached) as caught:
        limiter.enter(limited)
    assert dict(caught.value.headers)[b"x-ratelimit-remaining-requests"] == b"0"
    assert caught.value.status == 429
    assert caught.value.body()["error"]["code"] == "rate_limit_exceeded"


async def test_tokens_count_when_they_are_reported() -> None:
    """The estimate is reserved until then, and given back."""
    limiter, limited = Clock().limiter(), key(tpm=1000)
    lease = limiter.enter(limited, 900)
    with pytest.raises(LimitReached, match="used 900, this request needs about 200"):
        limiter.enter(limited, 200)
    limiter.charge(row(prompt_tokens=100, completion_tokens=50))
    lease.leave()
    limiter.enter(limited, 800).leave()
    with pytest.raises(LimitReached):
        limiter.enter(limited, 900)


async def test_a_request_that_can_never_fit() -> None:
    """SDKs are told not to try again."""
    with pytest.raises(LimitReached) as caught:
        Clock().limiter().enter(key(tpm=100), 101)
    assert (b"x-should-retry", b"false") in caught.value.headers


async def test_without_an_estimate_the_last_request_may_go_over() -> None:
    """Then nothing until the minute is over."""
    clock = Clock()
    limiter, limited = clock.limiter(), key(tpm=100)
    limiter.enter(limited).leave()
    limiter.charge(row(prompt_tokens=500, completion_tokens=None))
    with pytest.raises(LimitReached):
        limiter.enter(limited)
    clock.monotonic += 61
    limiter.enter(limited)


async def test_a_budget() -> None:
    """OpenAI's code for it, no retries, and tomorrow is another day."""
    clock = Clock()
    limiter, limited = clock.limiter(), key(budget_day=1000)
    limiter.enter(limited).leave()
    limiter.charge(row(cost_nano_usd=1000))
    with pytest.raises(BudgetSpent, match="budget of key alice for this day is spent") as caught:
        limiter.enter(limited)
    assert caught.value.body()["error"]["code"] == "insufficient_quota"
    assert (b"x-should-retry", b"false") in caught.value.headers
    clock.wall += caught.value.retry_after or 0
    limiter.enter(limited)


async def test_a_restart_refills_no_budget() -> None:
    """The ledger remembers."""
    limiter = Clock().limiter()
    limiter.restore([("alice", int(NOON // DAY), 1000), ("bob", int(NOON // DAY) - 1, 1000)])
    with pytest.raises(BudgetSpent):
        limiter.enter(key(budget_day=1000))
    limiter.enter(key("bob", budget_day=1000))


async def test_a_wall_clock_that_jumps_changes_no_rate() -> None:
    """Rates run on the monotonic clock, budgets find their day again."""
    clock = Clock()
    limiter, limited = clock.limiter(), key(rpm=1, budget_day=1000)
    limiter.enter(limited).leave()
    for jump in (-10 * DAY, 20 * DAY):
        clock.wall += jump
        with pytest.raises(LimitReached, match="requests per minute"):
            limiter.enter(limited)
    clock.wall = NOON
    limiter.charge(row(cost_nano_usd=1000))
    clock.wall += 400 * DAY
    clock.monotonic += 61
    limiter.enter(limited).leave()
    clock.wall = NOON
    with pytest.raises(BudgetSpent):
        limiter.enter(limited)


async def test_keys_do_not_share() -> None:
    """One key's limit is not another's."""
    limiter = Clock().limiter()
    limiter.enter(key("alice", rpm=1))
    limiter.enter(key("bob", rpm=1))


async def test_a_key_without_limits_costs_nothing() -> None:
    """No meter is kept for it."""
    limiter = Clock().limiter()
    assert limiter.enter(key()) is FREE
    FREE.leave()
    limiter.charge(row())
    assert limiter.enter(key()) is FREE


async def test_a_key_that_is_revoked_while_its_request_runs() -> None:
    """The answer is finished and its cost counted; a key of that name later starts with it."""
    limiter, limited = Clock().limiter(), key(concurrent=1, budget_day=1000)
    lease = limiter.enter(limited)
    limiter.charge(row(cost_nano_usd=400))
    lease.leave()
    limiter.charge(row(cost_nano_usd=600))
    with pytest.raises(BudgetSpent):
        limiter.enter(limited)


def test_models_of_a_key() -> None:
    """403, with the parameter that was wrong."""
    limited = GatewayKey("alice", new_secret()[1], 0.0, models=("gpt-*",))
    check_model(limited, "gpt-4o")
    with pytest.raises(Forbidden, match="may not use the model o3") as caught:
        check_model(limited, "o3")
    assert caught.value.param == "model"


def test_a_deployment_in_the_path_is_a_model_too() -> None:
    """Azure answers with the path's model whatever the body says, so neither may be another."""
    limited = GatewayKey("alice", new_secret()[1], 0.0, models=("gpt-*",))
    check_model(limited, "gpt-4o", "gpt-4o")
    check_model(limited, "", "gpt-4o")
    for model, deployment in (("gpt-4o", "o3"), ("o3", "gpt-4o"), ("", "o3")):
        with pytest.raises(Forbidden, match="may not use the model o3"):
            check_model(limited, model, deployment)
    with pytest.raises(Forbidden, match="names none"):
        check_model(limited, "")


def test_several_workers_would_multiply_the_limits() -> None:
    """Refused, with the sentence that says why; revoked and unlimited keys do not matter."""
    revoked = GatewayKey("old", new_secret()[1], 0.0, limits=Limits(rpm=1), revoked_at=1.0)
    check_workers(4, [revoked, key()])
    check_workers(1, [key(rpm=1)])
    with pytest.raises(ConfigError, match="limits of key alice would hold 4 times"):
        check_workers(4, [revoked, key(rpm=1)])
