"""What a turn writes into the books."""

from dataclasses import replace

import pytest

from proxy.account import Account
from proxy.observe.metrics import Metrics, RoundOutcome
from proxy.plan.plan import RequestPlan
from proxy.stream.collect import Call
from proxy.upstream.rounds import Report, Spoken
from tests.turns import ListLedger, chat_request


def _account(plan: RequestPlan | None = None) -> tuple[Account, ListLedger, Metrics]:
    ledger, metrics = ListLedger(), Metrics()
    account = Account(ledger, metrics, chat_request(b"{}"), "default", "m")
    account.plan = plan or RequestPlan(None)
    return account, ledger, metrics


def test_a_row_says_what_the_upstream_reported() -> None:
    """Unknown numbers are None, never 0."""
    account, ledger, _ = _account(RequestPlan(None, saved=500))
    usage = {"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 3}}
    account.enter(Report("search_round", 2, 1.0, 5.0, usage, "m-2", 4, "ok"))
    row = ledger.rows[0]
    assert (row.context, row.round, row.model, row.answered_model) == (
        "search_round",
        2,
        "m",
        "m-2",
    )
    assert (row.prompt_tokens, row.cached_tokens, row.completion_tokens) == (7, 3, None)
    assert row.tokens_avoided == 500
    assert row.cost_nano_usd is None


def test_what_was_avoided_is_told_once_per_turn() -> None:
    """Sums over the rows are right: a hidden round would not be there without deferral."""
    account, ledger, _ = _account(RequestPlan(None, deferred=9, saved=500))
    for number, context in enumerate(("search_round", "main"), 1):
        account.enter(Report(context, number, 1.0, 5.0, None, "m", 4, "ok"))
    assert [row.tokens_avoided for row in ledger.rows] == [500, None]
    assert [row.tools_deferred for row in ledger.rows] == [9, None]


def test_hidden_rounds_are_counted_by_what_they_came_to() -> None:
    """An operator sees from the metric that searches find nothing."""
    account, _, metrics = _account()
    findings: tuple[RoundOutcome, ...] = ("found", "empty", "repaired")
    for number, finding in enumerate(findings, 1):
        account.enter(Report("search_round", number, 1, 5, None, "m", 4, "ok", finding=finding))
    account.enter(Report("main", 4, 1.0, 5.0, None, "m", 4, "http_500"))
    text = metrics.render()[0].decode()
    for outcome in ("found", "empty", "repaired", "failed"):
        assert f'usher_tool_search_rounds_total{{outcome="{outcome}"}} 1.0' in text


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        ("http_503", "http_5xx"),
        ("http_429", "http_429"),
        ("http_404", "http_4xx"),
        ("stream_truncated", "stream_truncated"),
        ("upstream_unreachable", "upstream_unreachable"),
        ("no_completion", "no_completion"),
        ("ok", None),
        ("client_gone", None),
        ("failed", None),
    ],
)
def test_each_failed_call_is_counted_once(outcome: str, kind: str | None) -> None:
    """Those of hidden rounds and of streams that have begun, too; what is no upstream's is not."""
    account, _, metrics = _account()
    account.enter(Report("search_round", 1, 1.0, 5.0, None, "m", 4, "ok", finding="found"))
    account.enter(Report("main", 2, 1.0, 5.0, None, "m", 4, outcome))
    counts = {
        sample.labels["kind"]: sample.value
        for metric in metrics.registry.collect()
        for sample in metric.samples
        if sample.name == "usher_upstream_errors_total" and sample.value
    }
    assert counts == ({} if kind is None else {kind: 1})


def test_the_time_of_ushers_own_is_observed() -> None:
    """The histogram that the documentation tells operators to watch has every turn in it."""
    account, _, metrics = _account()
    assert 0 < account.stamp() < 1000
    assert "usher_overhead_seconds_count 1.0" in metrics.render()[0].decode()


def test_a_turn_is_closed_once() -> None:
    """Whatever ends it first decides its outcome."""
    account, ledger, _ = _account()
    account.close("ok")
    account.close("client_gone")
    assert [turn.outcome for turn in ledger.turns] == ["ok"]


def test_predictions_are_judged_by_what_was_called() -> None:
    """Called guesses are hits, others unused; a searched tool that was called is a miss."""
    plan = RequestPlan(None, 9, 1, 6, ("a", "b", "old"), ("a", "b"), ("earlier",), saved=10)
    account, ledger, metrics = _account(replace(plan, foreseeable=(*tuple("abcd"), "old")))
    account.discover(["c", "d"])
    calls = tuple(Call(i, str(i), name, "{}", {}) for i, name in enumerate(("a", "c", "old")))
    account.close("ok", Spoken("", calls))
    turn = ledger.turns[0]
    assert (turn.hits, turn.unused, turn.missed) == (1, 1, 1)
    text = metrics.render()[0].decode()
    assert 'usher_predictions_total{outcome="hit"} 1.0' in text
    assert 'usher_tools_total{state="deferred"} 6.0' in text
    assert 'usher_tools_total{state="discovered"} 2.0' in text
    assert turn.discovered == 3, "what earlier turns found is still in the prompt"
    assert "usher_tool_tokens_saved_total 10.0" in text


@pytest.mark.parametrize(
    ("foreseeable", "missed"), [(("listed", "found", "earlier", "used"), 2), ((), 0)]
)
def test_a_call_that_nothing_foresaw_is_a_miss(foreseeable: tuple[str, ...], missed: int) -> None:
    """From a search or straight from the listing alike; but not where nothing was predicted.

    What was loaded when the turn began, by a search or a call of an earlier turn, is none.
    """
    account, ledger, _ = _account(
        RequestPlan(None, discovered=("earlier",), called=("used",), foreseeable=foreseeable)
    )
    account.discover(["found"])
    names = ("listed", "found", "earlier", "used", "kept")
    calls = tuple(Call(i, str(i), name, "{}", {}) for i, name in enumerate(names))
    account.close("ok", Spoken("", calls))
    assert ledger.turns[0].missed == missed


def test_a_bypassed_request_counts_no_tools() -> None:
    """Only turns that deferral took part in are measured."""
    account, ledger, metrics = _account(RequestPlan("small", 3))
    account.enter_single("ok", {"prompt_tokens": 1}, "m")
    account.close("ok")
    assert ledger.rows[0].tools_sent == 3
    assert ledger.turns[0].detail is None
    assert 'usher_tools_total{state="kept"} 0.0' in metrics.render()[0].decode()


def test_tokens_counted_during_the_turn_are_booked() -> None:
    """A new catalogue is counted while the model answers; the row waits for that anyway."""
    account, ledger, _ = _account(RequestPlan(None, deferred=9))
    account.recount = lambda: (500, 90)
    account.enter_single("ok")
    account.close("ok")
    assert ledger.rows[0].tokens_avoided == ledger.turns[0].tokens_avoided == 500


def test_tokens_counted_too_late_stay_unknown_in_the_whole_turn() -> None:
    """The rows and the turn's line never tell different sums."""
    account, ledger, _ = _account(RequestPlan(None, deferred=9))
    counts = iter([(None, None), (500, 90)])
    account.recount = lambda: next(counts)
    account.enter_single("ok")
    account.close("ok")
    assert ledger.rows[0].tokens_avoided is None
    assert ledger.turns[0].tokens_avoided is None


def test_a_plan_that_was_not_followed_saved_nothing() -> None:
    """In observe mode the upstream received every tool; the plan is shown, not booked."""
    plan = RequestPlan("observe", 9, 2, 7, ("a",), ("a",), saved=500, sent=90)
    account, ledger, metrics = _account(plan)
    account.enter_single("ok", {"prompt_tokens": 1}, "m")
    account.close("ok")
    row, turn = ledger.rows[0], ledger.turns[0]
    assert (row.tools_sent, row.tools_deferred, row.tokens_avoided) == (9, 0, 0)
    assert (turn.kept, turn.deferred, turn.predicted, turn.tokens_avoided) == (9, 0, 0, 0)
    assert turn.detail is not None
    assert turn.detail["plan"]["bypass"] == "observe"
    assert turn.detail["plan"]["tokens_saved"] == 500
    assert "usher_tool_tokens_saved_total 0.0" in metrics.render()[0].decode()


def test_the_books_go_by_the_id_that_the_client_sees() -> None:
    """The upstream's own id when it sends one; ours is noted beside it."""
    account, ledger, _ = _account()
    account.adopt([(b"X-Request-Id", b"up_1")])
    account.enter_single("ok")
    account.close("ok")
    assert ledger.rows[0].request_id == ledger.turns[0].request_id == "up_1"
    assert ledger.turns[0].detail is not None
    assert ledger.turns[0].detail["own_id"] == "req_1"
