"""Answers that lie cost one answer and are never used."""

import math
from typing import Any

import pytest

from proxy.judge.questions import Choice, Score
from proxy.judge.validate import (
    BadAnswer,
    Rules,
    check_choice,
    check_noul,
    check_score,
    weigh_choice,
    weigh_score,
)

CHOICE = Choice("Which?", {"a": None, "b": None})
SCORE = Score("How much?", ("low", "middle", "high"))


@pytest.mark.parametrize(
    "value", [None, True, "0.4", math.nan, math.inf, -0.1, 1.1, 10**400, [], {}]
)
def test_what_is_no_probability(value: Any) -> None:
    """Null is never 0, and a text or a boolean is never a number."""
    with pytest.raises(BadAnswer):
        check_noul(value)


def test_float_noise_is_forgiven() -> None:
    """A float32 one is one."""
    assert check_noul(1.0000001).probability == 1.0
    assert check_noul(0).probability == 0.0


@pytest.mark.parametrize(
    ("label", "probabilities"),
    [
        ("c", {"a": 0.5, "b": 0.5}),
        (None, {"a": 0.5, "b": 0.5}),
        ("a", {"a": 1.0}),
        ("a", {"a": 0.4, "b": 0.4, "c": 0.2}),
        ("a", {"a": 1.5, "b": 1.5}),
        ("a", {"a": math.nan, "b": 0.5}),
        ("a", {"a": None, "b": 1.0}),
        ("a", {"a": 0.0, "b": 0.0}),
        ("a", {"a": 0.1, "b": 0.9}),
        ("a", [0.5, 0.5]),
    ],
)
def test_lying_choices(label: Any, probabilities: Any) -> None:
    """Unknown labels, wrong keys, sums of 3, NaN, null, and a label that did not win."""
    with pytest.raises(BadAnswer):
        check_choice(CHOICE, label, probabilities)


def test_confidence_is_ours() -> None:
    """It is computed from the probabilities, whatever the server says."""
    answer = check_choice(CHOICE, "a", {"a": 0.9, "b": 0.11})
    assert answer.confidence == pytest.approx(0.782, abs=0.01)
    assert math.fsum(answer.probabilities.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("weights", [{"b": 0.25, "a": 0.75}, {"b": 0.26, "a": 0.75}])
def test_probabilities_keep_the_order_of_the_options(weights: dict[str, float]) -> None:
    """Whatever order a server writes them in, and whether or not they have to be settled."""
    answer = check_choice(CHOICE, "a", weights)
    assert list(answer.probabilities) == ["a", "b"]
    assert answer.probabilities["b"] == pytest.approx(0.255, abs=0.01)


def test_a_label_alone_is_not_measured() -> None:
    """No probabilities, no confidence – and no certainty either."""
    answer = check_choice(CHOICE, "b", None)
    assert (answer.label, answer.probabilities, answer.confidence) == ("b", {}, None)


def test_self_reported_numbers_earn_no_confidence() -> None:
    """Unless the operator trusts them."""
    written = Rules(calibration="verbalized", slack=0.05, confident=False)
    answer = weigh_choice(CHOICE, {"a": 0.72, "b": 0.3}, written)
    assert answer.confidence is None
    assert answer.calibration == "verbalized"
    with pytest.raises(BadAnswer):
        weigh_choice(CHOICE, {"a": 0.8, "b": 0.3}, written)


@pytest.mark.parametrize(
    ("score", "probabilities"),
    [
        (None, None),
        (2.5, None),
        (0.25, {"0": 0.8, "1": 0.2}),
        (0.25, "text"),
        (1.9, {"0": 0.8, "1": 0.15, "2": 0.05}),
        (0.25, {"0": 3, "1": 0, "2": 0}),
    ],
)
def test_lying_scores(score: Any, probabilities: Any) -> None:
    """Out of range, levels missing, or not what the probabilities give."""
    with pytest.raises(BadAnswer):
        check_score(SCORE, score, probabilities)


def test_honest_scores() -> None:
    """The documented example, and one without probabilities."""
    answer = check_score(SCORE, 0.25, {"0": 0.8, "1": 0.15, "2": 0.05})
    assert answer.score == pytest.approx(0.25)
    assert answer.confidence == pytest.approx(0.63, abs=0.01)
    assert check_score(SCORE, 1.4, None).confidence is None
    assert weigh_score([0.0, 0.0, 1.0]).score == 2.0


def test_a_near_tie_is_the_servers_to_break() -> None:
    """Two decimals cannot tell 0.504 from 0.496."""
    answer = check_choice(CHOICE, "b", {"a": 0.5, "b": 0.5})
    assert answer.label == "b"
