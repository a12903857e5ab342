"""When a change pays."""

import pytest

from proxy.ledger.usage import Tokens
from proxy.triage.cost import (
    Change,
    common_prefix,
    count_misses,
    is_uncached,
    measure,
    tokens_of,
    weigh,
)
from proxy.triage.plan import Sent
from proxy.triage_settings import Triage

SETTINGS = Triage.model_validate({"window_tokens": 200_000, "cost": {"expected_calls": 20}})


@pytest.mark.parametrize(("used", "removed", "behind", "verdict"), [
    (60_000, 40_000, 20_000, "pays"),
    (60_000, 20_000, 40_000, "declined by cost"),
    (60_000, 10_000, 1_000, "too little"),
    (180_000, 10_000, 170_000, "forced"),
    (180_000, 0, 0, "too little"),
])  # fmt: skip
def test_the_rule(used: float, removed: float, behind: float, verdict: str) -> None:
    """Reading what is behind anew once, against what is read less on every call to come."""
    assert weigh(Change(used, removed, behind), SETTINGS) == verdict


def test_without_a_cache_nothing_is_read_anew() -> None:
    """As the provider shows: then only what is taken out counts."""
    assert weigh(Change(60_000, 20_000, 40_000), SETTINGS, uncached=True) == "pays"
    assert weigh(Change(60_000, 10_000, 1_000), SETTINGS, uncached=True) == "too little"


@pytest.mark.parametrize(("known", "cached", "warm", "misses"), [
    (0, 0, True, 1), (1, 0, True, 2), (1, 0, False, 1), (1, None, True, 1), (2, 900, True, 0),
])  # fmt: skip
def test_misses_in_a_row(known: int, cached: int | None, warm: bool, misses: int) -> None:
    """A prefix that has just moved misses of course, and who reports nothing says nothing."""
    before = Sent("", "", 0.0, 0.0, known)
    assert count_misses(before, Tokens(prompt=4_000, cached=cached), warm=warm) == misses
    assert count_misses(before, Tokens(prompt=400, cached=0), warm=warm) == known
    assert count_misses(None, Tokens(prompt=4_000, cached=cached), warm=warm) == 0


def test_two_misses_are_no_accident() -> None:
    """And an operator may say that there is no cache."""
    assert [is_uncached(misses, SETTINGS) for misses in (0, 1, 2)] == [False, False, True]
    assert is_uncached(0, Triage.model_validate({"cost": {"cache_read": 1}}))


def test_without_a_cache_every_reclaim_pays() -> None:
    """Prices of 1 and 1 say that there is none."""
    settings = Triage.model_validate({"cost": {"cache_read": 1, "cache_write": 1}})
    assert weigh(Change(60_000, 20_000, 40_000), settings) == "pays"


def test_a_change_is_measured_on_the_bytes() -> None:
    """Behind the first difference everything is new; a tool in front makes it all new."""
    before, after = b"a" * 400 + b"b" * 400, b"a" * 400 + b"c" * 80
    assert measure(before, after, 200, whole=False) == Change(200, 80, 20)
    assert measure(before, after, 200, whole=True).behind == 120
    assert common_prefix(b"same", b"same") == 4
    assert common_prefix(b"", b"x") == 0
    assert tokens_of(400) == 100
