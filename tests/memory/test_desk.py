"""The arithmetic of one person's rows."""

from proxy.memory.change import Memory, Person, Snapshot, Store
from proxy.memory.desk import check_budget, is_stale

ROW = Memory("a", "x", 40, 3, 0.0, 0.0)
SNAPSHOT = Snapshot(Person(), [ROW, Memory("b", "y", 50, 1, 0.0, 0.0)])


def test_what_a_key_gives_back_counts() -> None:
    """Total minus old plus new."""
    assert check_budget(Store("a", "z", 50), SNAPSHOT, 100) is None
    refused = check_budget(Store("c", "z", 11), SNAPSHOT, 100)
    assert refused is not None
    assert (refused.reason, refused.tokens, refused.total) == ("would_exceed", 1, 101)


def test_revisions() -> None:
    """None asks for nothing, 0 means that there must be no row."""
    assert [is_stale(ROW, rev) for rev in (None, 3, 0)] == [False, False, True]
    assert [is_stale(None, rev) for rev in (None, 0, 1)] == [False, False, True]
