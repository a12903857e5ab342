"""How sure a distribution is, against published replies of the models that define it."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.judge.confidence import (
    choice_confidence,
    expected_level,
    score_confidence,
    settle,
    sums_to_one,
)


@pytest.mark.parametrize(
    ("probabilities", "published"),
    [([0.06, 0.06, 0.88], 0.81), ([0.4, 0.33, 0.27], 0.10)],
)
def test_choice_confidence_is_typesafes(probabilities: list[float], published: float) -> None:
    """Within what two decimals leave open."""
    assert choice_confidence(probabilities) == pytest.approx(published, abs=0.012)


def test_two_close_candidates_of_61_are_unsure() -> None:
    """The seed's ranking: 0.39 against 0.38 was published with confidence 0.37."""
    rest = [0.23 / 59] * 59
    assert choice_confidence([0.39, 0.38, *rest]) == pytest.approx(0.37, abs=0.012)


def test_score_confidence_is_typesafes() -> None:
    """A rating that is certain has 1, a uniform one about nothing."""
    assert score_confidence([0.8, 0.15, 0.05]) == pytest.approx(0.63, abs=0.012)
    assert score_confidence([0.0, 1.0, 0.0]) == 1.0
    assert score_confidence([1 / 3] * 3) == 0.0


def test_one_option_leaves_no_doubt() -> None:
    """There is nothing to be unsure between."""
    assert choice_confidence([1.0]) == score_confidence([1.0]) == 1.0


def test_expected_level_weighs_levels() -> None:
    """The documented example."""
    assert expected_level([0.8, 0.15, 0.05]) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("values", "fine"),
    [
        ([0.33, 0.33, 0.33], True),
        ([0.335, 0.335, 0.335], True),
        ([1.0, 1.0, 1.0], False),
        ([0.5, 0.4], False),
        ([0.0, 0.0], False),
        ([0.30] + [0.0] * 254, True),
    ],
)
def test_sums_may_be_off_by_rounding_only(values: list[float], fine: bool) -> None:
    """Half a unit per value that was printed, not more."""
    assert sums_to_one(values) is fine


def test_mass_below_the_last_decimal_is_not_given_to_the_winner() -> None:
    """255 options at 0.30 and 254 zeros: the winner is at 0.30 and not certain."""
    settled = settle([0.30] + [0.0] * 254)
    assert settled[0] == pytest.approx(0.30, abs=0.001)
    assert math.fsum(settled) == pytest.approx(1.0)


@given(st.lists(st.floats(0.001, 1.0), min_size=2, max_size=255))
@example([0.84375, 0.03125, 0.005859375, 0.005])
def test_a_rounded_distribution_is_recovered(weights: list[float]) -> None:
    """Rounding to two decimals and settling stays within a unit, and sums to one."""
    total = math.fsum(weights)
    true = [weight / total for weight in weights]
    printed = [round(p, 2) for p in true]
    if not sums_to_one(printed):
        return
    settled = settle(printed)
    assert math.fsum(settled) == pytest.approx(1.0)
    assert max(abs(s - t) for s, t in zip(settled, true, strict=True)) < 0.011
