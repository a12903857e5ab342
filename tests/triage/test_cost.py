"""When a change pays."""

import pytest

from proxy.triage.cost import Change, common_prefix, measure, tokens_of, weigh
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


def test_a_cold_cache_makes_it_free() -> None:
    """What would be read anew has to be read anew anyway."""
    assert weigh(Change(60_000, 20_000, 40_000), SETTINGS, cold=True) == "cold"


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
