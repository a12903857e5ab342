"""Judgments are counted by who was asked and what came of it."""

from prometheus_client import CollectorRegistry

from proxy.judge.failures import Failure
from proxy.judge.tally import OTHER, OUTCOMES, JudgmentTally
from tests.fakes.lines import row


def test_answers_and_failures_are_apart() -> None:
    """Each attempt counts once, under its own provider."""
    registry = CollectorRegistry()
    tally = JudgmentTally(registry)
    for provider, outcome in (
        ("typesafe", "ok"),
        ("typesafe", Failure.TIMEOUT),
        ("typesafe", Failure.TIMEOUT),
        ("embedded", "ok"),
        ("embedded", "partial"),
    ):
        tally.count(row(context="classification", provider=provider, outcome=outcome))

    def count(provider: str, outcome: str) -> float | None:
        labels = {"provider": provider, "outcome": outcome}
        return registry.get_sample_value("usher_judgments_total", labels)

    assert count("typesafe", "ok") == 1
    assert count("typesafe", "timeout") == 2
    assert count("embedded", "ok") == 1
    assert count("embedded", "partial") == 1
    assert count("typesafe", "partial") is None


def test_outcomes_are_a_short_list() -> None:
    """What is none of the ledger's words counts as other."""
    registry = CollectorRegistry()
    tally = JudgmentTally(registry)
    for number in range(100):
        tally.count(row(provider="p", outcome=f"error {number}"))
    labels = {"provider": "p", "outcome": OTHER}
    assert registry.get_sample_value("usher_judgments_total", labels) == 100
    assert len(OUTCOMES) == len(Failure) + 3
