"""The values that travel."""

from proxy.memory.change import Memory, Outcome, Person, Snapshot


def test_artifacts() -> None:
    """An update has its value and what it replaced; what changed nothing is not told."""
    update = Outcome("update", "city", "Rome", "Bonn", 1, event=7)
    assert update.as_artifact("r") == {
        "type": "update",
        "key": "city",
        "request_id": "r",
        "value": "Rome",
        "token_count": 1,
        "old_value": "Bonn",
        "undo": 7,
    }
    assert not Outcome("unchanged", "city").told


def test_a_snapshot_knows_its_size() -> None:
    """The sum of its values."""
    assert Snapshot(Person(), [Memory("a", "x", 2, 1, 0, 0)] * 2).tokens == 4
