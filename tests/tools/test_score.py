"""From scores to the best few documents."""

from proxy.tools.score import Hit, select


def test_best_first_and_ties_in_order() -> None:
    """Higher scores come first, equal ones keep the catalogue's order."""
    assert select([1.0, 3.0, 1.0, 0.0], 3, {}) == [Hit(1, 3.0), Hit(0, 1.0), Hit(2, 1.0)]


def test_twins_share_a_place() -> None:
    """A repeated tool does not take a place of its own."""
    assert select([2.0, 2.0, 1.0], 2, {1: 0}) == [Hit(0, 2.0), Hit(2, 1.0)]


def test_known_leaders_spare_the_search() -> None:
    """Leaders are enough when there are as many as wanted."""
    assert select([5.0, 4.0, 3.0], 2, {}, {0, 1}) == [Hit(0, 5.0), Hit(1, 4.0)]


def test_low_scores_fill_up() -> None:
    """A distant second still makes the list."""
    assert [hit.position for hit in select([0.01, 9.0, 0.0], 3, {})] == [1, 0]


def test_nothing_wanted_nothing_given() -> None:
    """A limit of zero or less is an empty list."""
    assert select([1.0], 0, {}) == select([1.0], -1, {}) == []
