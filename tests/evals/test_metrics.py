"""The figures of retrieval, by hand."""

from proxy.evals.metrics import gain_at, mean, percentile, recall_at, reciprocal_rank

ONE = (frozenset({"a"}),)
TWO = (frozenset({"a", "b"}), frozenset({"c"}))


def test_recall_counts_slots() -> None:
    """A slot is met by any of its ids."""
    assert recall_at(["x", "b", "c"], TWO, 2) == 0.5
    assert recall_at(["x", "b", "c"], TWO, 3) == 1.0


def test_reciprocal_rank_is_of_the_first() -> None:
    """Second place is a half, nowhere is nothing."""
    assert reciprocal_rank(["x", "c"], TWO) == 0.5
    assert reciprocal_rank(["x"], TWO) == 0.0


def test_gain_is_one_for_the_ideal_order() -> None:
    """All slots first is perfect; the same slot twice counts once."""
    assert gain_at(["c", "a", "b"], TWO, 10) == 1.0
    assert gain_at(["a", "b"], TWO, 10) < 1.0
    assert gain_at(["x"], ONE, 10) == 0.0


def test_mean_and_percentile_of_nothing() -> None:
    """An empty set has figures too."""
    assert mean([]) == percentile([], 0.5) == 0.0
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
