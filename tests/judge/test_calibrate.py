"""Thresholds that keep a promise."""

import pytest

from proxy.errors import ConfigError
from proxy.judge.calibrate import (
    Labelled,
    Locked,
    Target,
    find_drift,
    find_thresholds,
    fit_threshold,
    read_lock,
    reliability,
    write_lock,
)
from proxy.judge.questions import NoulAnswer
from proxy.judge.verdict import Verdict

EXAMPLES = [
    Labelled(p, truth)
    for p, truth in [
        (0.95, True), (0.9, True), (0.8, False), (0.7, True), (0.6, True), (0.4, False),
        (0.3, True), (0.2, False), (0.1, False), (1.0, True),
    ]
]  # fmt: skip


def test_the_lowest_threshold_with_the_wanted_precision() -> None:
    """So that as much as possible passes."""
    fit = fit_threshold(EXAMPLES, Target("precision", 0.8))
    assert (fit.threshold, fit.examples, fit.positives) == (0.6, 10, 6)
    assert fit.precision == pytest.approx(5 / 6)
    assert fit.recall == pytest.approx(5 / 6)
    assert fit_threshold(EXAMPLES, Target("precision", 1.0)).threshold == 0.9


def test_the_highest_threshold_with_the_wanted_recall() -> None:
    """So that as little as possible passes in vain."""
    assert fit_threshold(EXAMPLES, Target("recall", 0.8)).threshold == 0.6
    assert fit_threshold(EXAMPLES, Target("recall", 1.0)).threshold == 0.3


def test_a_promise_that_cannot_be_kept_is_not_made() -> None:
    """No threshold is better than a wrong one."""
    wrong = [Labelled(0.9, truth=False), Labelled(0.1, truth=True)]
    fit = fit_threshold(wrong, Target("precision", 0.9))
    assert (fit.threshold, fit.precision, fit.recall) == (None, None, None)
    assert fit_threshold([Labelled(0.9, truth=False)], Target("recall", 0.9)).threshold is None


def test_reliability_compares_said_with_true() -> None:
    """Ten bins, the last one includes certainty."""
    bins = reliability(
        [Labelled(1.0, truth=True), Labelled(0.92, truth=False), Labelled(0.1, truth=False)]
    )
    assert [(b.low, b.count) for b in bins] == [(0.1, 1), (0.9, 2)]
    assert bins[1].stated == pytest.approx(0.96)
    assert bins[1].true == 0.5
    assert fit_threshold(EXAMPLES, Target("recall", 0.8)).calibration_error > 0


def test_the_lock_survives_being_written() -> None:
    """Threshold, wording and model of every question."""
    lock = {"memory_request": Locked(0.42, "abc", "jev-1.14.0")}
    assert read_lock(write_lock("typesafe", lock)) == lock


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b'{"version": 2}', b'{"version": 1, "questions": {"a": {}}}',
     b'{"version": 1, "questions": {"a": {"threshold": 7, "question_hash": "", "model": ""}}}'],
)  # fmt: skip
def test_another_file_is_no_lock(data: bytes) -> None:
    """An error at start."""
    with pytest.raises(ConfigError, match="calibration file"):
        read_lock(data)


def test_drift_is_said() -> None:
    """Another model or another wording makes a threshold worthless."""
    lock = {"a": Locked(0.4, "hash", "jev-1.13.0"), "unasked": Locked(0.4, "x", "y")}
    verdict = Verdict({"a": NoulAnswer(0.5)}, models={"a": "jev-1.14.0"})
    drift = find_drift(lock, verdict, {"a": "other"})
    assert len(drift) == 2
    assert "jev-1.13.0" in drift[0]
    assert "wording" in drift[1]
    assert find_drift(lock, Verdict(models={"a": "jev-1.13.0"}), {"a": "hash"}) == []


def test_thresholds_hold_for_their_model_and_wording() -> None:
    """Another model's or another wording's threshold is not used."""
    lock = {"spam": Locked(0.4, "h1", "jev-1"), "ham": Locked(0.3, "h2", "jev-1")}
    told = Verdict(models={"spam": "jev-1", "ham": "jev-2"})
    assert find_thresholds(lock, told, {"spam": "h1", "ham": "h2"}) == {"spam": 0.4}
    assert find_thresholds(lock, told, {"spam": "h9"}) == {}
