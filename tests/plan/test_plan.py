"""A plan can be shown."""

from proxy.plan.plan import Decision, RequestPlan, pass_as_is


def test_the_summary_is_the_header() -> None:
    """The header has the four counts in a fixed order."""
    plan = RequestPlan(None, 10, 2, 6, ("a",), (), ("b",))
    assert plan.summary() == "kept=2;deferred=6;predicted=1;discovered=1"


def test_describe_names_every_tools_fate() -> None:
    """A score is shown only where there is one."""
    plan = RequestPlan(
        None, 2, decisions=(Decision("a", "predicted", "ranked", 0.5), Decision("b", "kept", "pin"))
    )
    assert plan.describe()["catalogue"] is None
    assert plan.describe()["decisions"] == [
        {"tool": "a", "fate": "predicted", "reason": "ranked", "score": 0.5},
        {"tool": "b", "fate": "kept", "reason": "pin"},
    ]


def test_what_passes_whole_keeps_its_tools() -> None:
    """All tools are in the prompt; how many is unknown, not 0, where nobody looked."""
    assert pass_as_is("all kept", 5).summary() == "kept=5;deferred=0;predicted=0;discovered=0"
    unread = pass_as_is("off").describe()["tools"]
    assert (unread["sent_by_client"], unread["kept"]) == (None, None)
    assert pass_as_is("no tools").describe()["tools"]["sent_by_client"] == 0


def test_a_plan_that_was_not_followed_books_nothing() -> None:
    """Observing sends every tool, so nothing is deferred and no token is saved."""
    plan = RequestPlan("observe", 10, 2, 8, ("a",), ("a",), ("b",), saved=70, sent=30)
    booked = plan.booked()
    assert (booked.kept, booked.deferred, booked.predicted, booked.discovered) == (10, 0, (), ())
    assert (booked.saved, booked.sent) == (0, 100)
    assert plan.summary() == "kept=2;deferred=8;predicted=1;discovered=1;mode=observe"
    followed = RequestPlan(None, 10, 2, 8, saved=70)
    assert followed.booked() is followed
