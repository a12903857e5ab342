"""Small facts about a turn."""

import asyncio

import pytest

from proxy.errors import ConnectFailed, UsherError
from proxy.facts import content_type, facts_of, outcome_of
from proxy.plan.plan import RequestPlan


def test_what_is_not_known_is_left_out() -> None:
    """A header that would have to lie is absent, never 0."""
    assert facts_of(RequestPlan("small"), 1.239) == [(b"x-usher-overhead-ms", b"1.24")]
    plan = RequestPlan(None, 3, 1, 2, saved=7)
    assert dict(facts_of(plan, 0.0)) == {
        b"x-usher-overhead-ms": b"0.00",
        b"x-usher-tools": b"kept=1;deferred=2;predicted=0;discovered=0",
        b"x-usher-tokens-saved": b"7",
    }


def test_what_was_only_observed_is_called_that() -> None:
    """Nobody takes a plan that was not followed for tokens that were saved."""
    headers = dict(facts_of(RequestPlan("observe", 3, 1, 2, saved=7), 0.0))
    assert headers[b"x-usher-tools"] == (b"kept=1;deferred=2;predicted=0;discovered=0;mode=observe")
    assert b"x-usher-tokens-saved" not in headers


def test_a_content_type_is_found_whatever_its_case() -> None:
    """Servers write header names and values as they like."""
    assert content_type([(b"X", b"y"), (b"Content-Type", b"Text/Event-Stream")]) == (
        b"text/event-stream"
    )
    assert content_type([]) == b""


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ConnectFailed("x"), "upstream_unreachable"),
        (UsherError("x"), "failed"),
        (asyncio.CancelledError(), "client_gone"),
        (GeneratorExit(), "client_gone"),
        (KeyError("x"), "failed"),
    ],
)
def test_an_outcome_is_a_word(error: BaseException, outcome: str) -> None:
    """The ledger's outcomes have few values, and no text of an error is among them."""
    assert outcome_of(error) == outcome
