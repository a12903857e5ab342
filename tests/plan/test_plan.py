"""A plan can be shown."""

from proxy.plan.plan import Decision, RequestPlan


def test_the_summary_is_the_header() -> None:
    """The header has the four counts in a fixed order."""
    plan = RequestPlan(None, 10, 2, 6, ("a",), (), ("b",))
    assert plan.summary() == "kept=2;deferred=6;predicted=1;discovered=1"


def test_describe_names_every_tools_fate() -> None:
    """A score is shown only where there is one."""
    plan = RequestPlan(
        None, 2, decisions=(Decision("a", "predicted", "ranked", 0.5), Decision("b", "kept", "pin"))
    )
    assert plan.describe()["decisions"] == [
        {"tool": "a", "fate": "predicted", "reason": "ranked", "score": 0.5},
        {"tool": "b", "fate": "kept", "reason": "pin"},
    ]
