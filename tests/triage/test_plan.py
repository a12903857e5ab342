"""Plans and records as stored bytes."""

from proxy.triage.plan import Act, Plan, count_acts, decode_plan, decode_sent


def test_a_plan_comes_back_as_it_was() -> None:
    """Acts, what is pending and what stays."""
    plan = Plan("ab" * 16, {"x": Act("drop", "Hi", 1)}, {"y": Act("note", "n", 2)}, {"z": 3}, "p")
    assert decode_plan(plan.encode()) == plan
    assert plan.name == "abababab"


def test_what_is_pending_can_be_put_into_force() -> None:
    """Under another anchor, with the old plan as its parent."""
    plan = Plan("a", {"x": Act("drop", "Hi", 1)}, {"y": Act("note", "n", 2)})
    adopted = plan.adopt("b", "cold", 5.0)
    assert set(adopted.acts) == {"x", "y"}
    assert not adopted.pending
    assert adopted.parent == "a"
    assert count_acts(adopted.acts) == {"drop": 1, "note": 1, "clear": 0}


def test_what_an_older_version_stored_is_no_plan() -> None:
    """It is as if there were none."""
    assert decode_plan(b'{"anchor":1}') is None
    assert decode_sent(b"{}") is None
