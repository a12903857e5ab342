"""A judge that fails is left alone for a while."""

import pytest

from proxy.judge.breaker import NO_CREDIT_SECONDS, Breaker, Patience
from proxy.judge.failures import Failed, Failure


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def make(forgiving: bool = False) -> tuple[Breaker, Clock]:
    clock = Clock()
    return Breaker(Patience(3, 30.0, forgiving), clock), clock


def fail(breaker: Breaker, failure: Failure = Failure.TIMEOUT, **facts: float | int) -> None:
    assert breaker.refusal() is None
    breaker.fail(Failed(failure, **facts))  # type: ignore[arg-type]  # status is an int


def test_three_in_a_row_open_it_for_thirty_seconds() -> None:
    """Two do not, and one success in between starts the count anew."""
    breaker, clock = make()
    fail(breaker)
    fail(breaker)
    assert breaker.refusal() is None
    breaker.succeed()
    for _ in range(3):
        fail(breaker)
    assert breaker.refusal() is Failure.BREAKER_OPEN
    clock.now += 29
    assert breaker.refusal() is Failure.BREAKER_OPEN


def test_one_probe_decides_after_that() -> None:
    """Only one caller asks; a failure opens it again, a success closes it."""
    breaker, clock = make()
    for _ in range(3):
        fail(breaker)
    clock.now += 31
    assert breaker.refusal() is None
    assert breaker.refusal() is Failure.BREAKER_OPEN
    breaker.fail(Failed(Failure.TIMEOUT))
    assert breaker.refusal() is Failure.BREAKER_OPEN
    clock.now += 31
    assert breaker.refusal() is None
    breaker.succeed()
    assert breaker.refusal() is None
    assert breaker.refusal() is None


def test_it_counts_as_open_until_it_has_answered() -> None:
    """The end of the pause, a probe and a probe that fails change nothing; an answer does."""
    breaker, clock = make()
    seen = []
    for _ in range(3):
        seen.append(breaker.open)
        fail(breaker)
    for _ in range(2):
        seen.append(breaker.open)
        clock.now += 31
        seen.append(breaker.open)
        fail(breaker)
    clock.now += 31
    assert breaker.refusal() is None
    seen.append(breaker.open)
    breaker.succeed()
    assert seen == [False] * 3 + [True] * 5
    assert not breaker.open


def test_a_caller_that_left_frees_the_probe() -> None:
    """Nobody learns anything from it, and the next one may try."""
    breaker, clock = make()
    for _ in range(3):
        fail(breaker)
    clock.now += 31
    fail(breaker, Failure.ABORTED)
    assert breaker.refusal() is None


@pytest.mark.parametrize("failure", [Failure.ABORTED, Failure.TOO_LARGE, Failure.UNSUPPORTED])
def test_what_is_not_its_fault_does_not_count(failure: Failure) -> None:
    """Callers that leave and states that are too large say nothing about a judge."""
    breaker, _ = make()
    for _ in range(10):
        fail(breaker, failure)
    assert breaker.refusal() is None


@pytest.mark.parametrize("status", [401, 404])
def test_a_wrong_key_or_address_is_for_good(status: int) -> None:
    """Until the configuration is read again."""
    breaker, clock = make()
    fail(breaker, Failure.UNAUTHORIZED, status=status)
    clock.now += 1e9
    assert breaker.refusal() is Failure.DISABLED


def test_a_clients_key_is_forgiven() -> None:
    """Where a client names model and key, the next one may be right."""
    breaker, _ = make(forgiving=True)
    fail(breaker, Failure.BAD_REQUEST, status=404)
    assert breaker.refusal() is None


@pytest.mark.parametrize(
    ("failure", "status"), [(Failure.PAYMENT, 402), (Failure.UNAUTHORIZED, 403)]
)
def test_no_credit_waits_five_minutes(failure: Failure, status: int) -> None:
    """Somebody has to pay first."""
    breaker, clock = make()
    fail(breaker, failure, status=status)
    clock.now += NO_CREDIT_SECONDS - 1
    assert breaker.refusal() is Failure.BREAKER_OPEN
    clock.now += 2
    assert breaker.refusal() is None


def test_retry_after_is_honoured() -> None:
    """A rate limit says itself when to come back."""
    breaker, clock = make()
    fail(breaker, Failure.RATE_LIMITED, status=429, retry_after=7.0)
    assert breaker.refusal() is Failure.BREAKER_OPEN
    clock.now += 3.0
    assert breaker.pause == pytest.approx(4.0)
    clock.now += 4.1
    assert breaker.pause is None
    assert breaker.refusal() is None


def test_nobody_knows_when_a_wrong_key_is_mended() -> None:
    """There is no end to wait for, and none before the first failure."""
    breaker, _ = make()
    assert breaker.pause is None
    fail(breaker, Failure.UNAUTHORIZED, status=401)
    assert breaker.pause is None
