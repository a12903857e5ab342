"""What the judgments of one request used, for its reply."""

from proxy.judge.bill import NOTHING, Bill, Use
from proxy.ledger.usage import Row
from tests.fakes.lines import row


def test_judgments_of_a_request_are_summed_and_told_once() -> None:
    """A retry was paid for, too; another request's are not among them, nor another tenant's."""
    bill = Bill()
    for request_id, tokens, cost in (("a", 1_140, 47_880), ("b", 7, 1), ("a", 60, 120)):
        bill.add(_judged(request_id, tokens, cost))
    assert bill.take("strangers", "a") == NOTHING
    assert bill.take("acme", "a").describe() == b"tokens=1200;cost=0.000048000"
    assert bill.take("acme", "a") == NOTHING


def test_what_is_unknown_is_left_out() -> None:
    """It is no 0; what nobody knows anything of has no header."""
    bill = Bill()
    bill.add(_judged("a", None, None))
    assert bill.take("acme", "a").describe() is None
    bill.add(_judged("a", 50, None))
    bill.add(_judged("a", None, None))
    assert bill.take("acme", "a").describe() == b"tokens=50"
    assert Use(None, 0).describe() == b"cost=0.000000000"
    assert Use(1, None).plus(Use(None, 2)) == Use(1, 2)


def test_only_judgments_of_turns_count() -> None:
    """Neither the model's own calls nor what memory and triage wrote."""
    bill = Bill()
    bill.add(row(request_id="a", context="main", prompt_tokens=10))
    assert bill.take("acme", "a") == NOTHING


def test_requests_that_never_ask_make_room() -> None:
    """Served decisions say what they used by themselves."""
    bill = Bill(most=2)
    for request_id in "abc":
        bill.add(_judged(request_id, 1, 1))
    assert [bill.take("acme", name) == NOTHING for name in "abc"] == [True, False, False]


def _judged(request_id: str, tokens: int | None, cost: int | None) -> Row:
    return row(
        request_id=request_id,
        context="classification",
        prompt_tokens=tokens,
        cost_nano_usd=cost,
    )
