"""Ledger lines as spans."""

from proxy.ledger.spans import call_span, turn_span
from tests.fakes.lines import NOON, row, turn


def test_a_call() -> None:
    """Names of the GenAI conventions; what is unknown is absent."""
    span = call_span(row(reasoning_tokens=None, cost_nano_usd=5))
    assert (span.kind, span.name, span.error) == ("client", "chat gpt-4o", None)
    assert (span.started_at, span.seconds) == (NOON, 0.0125)
    assert span.attributes["gen_ai.usage.input_tokens"] == 1000
    assert span.attributes["gen_ai.usage.cache_read.input_tokens"] == 400
    assert span.attributes["usher.cost_nano_usd"] == 5
    assert "gen_ai.usage.reasoning.output_tokens" not in span.attributes


def test_a_turn() -> None:
    """The parent, with what became of the tools."""
    span = turn_span(turn(outcome="aborted", duration_ms=None))
    assert (span.kind, span.error, span.seconds) == ("server", "aborted", 0.0)
    assert span.attributes["usher.tools.deferred"] == 232


def test_no_details() -> None:
    """What a judgment said stays in the ledger."""
    spans = (call_span(row(detail={"answers": "zebra"})), turn_span(turn(detail={"plan": "zebra"})))
    assert "zebra" not in str(spans)
