"""Prometheus sees what the ledger sees, with few labels."""

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from proxy.ledger.store import Health
from proxy.ledger.tally import Tally
from tests.fakes.lines import row


def scrape(tally: Tally) -> str:
    registry = CollectorRegistry()
    registry.register(tally)
    return generate_latest(registry).decode()


def test_tokens_and_money_by_context_and_model() -> None:
    """Two calls of one kind add up; what is unknown adds nothing."""
    tally = Tally(Health)
    tally.count(row(cost_nano_usd=2_000_000))
    tally.count(row(cost_nano_usd=None, reasoning_tokens=None))
    tally.count(row(context="classification", model="jev"))
    text = scrape(tally)
    assert 'usher_calls_total{context="main",model="gpt-4o"} 2.0' in text
    assert 'usher_usage_tokens_total{context="main",model="gpt-4o",type="prompt"} 2000.0' in text
    assert 'usher_usage_tokens_total{context="main",model="gpt-4o",type="reasoning"} 50.0' in text
    assert 'usher_cost_usd_total{context="main",model="gpt-4o"} 0.002' in text
    assert 'usher_calls_total{context="classification",model="jev"} 1.0' in text


def test_clients_cannot_make_the_labels_grow() -> None:
    """The fifty-first model is another one; the first fifty go on under their names."""
    tally = Tally(Health)
    for number in range(1000):
        tally.count(row(model=f"m{number}"))
    tally.count(row(model="m0"))
    text = scrape(tally)
    assert 'usher_calls_total{context="main",model="m0"} 2.0' in text
    assert 'usher_calls_total{context="main",model="other"} 950.0' in text
    assert text.count("usher_calls_total{") == 51


def test_the_ledgers_own_health() -> None:
    """What an alert should watch."""
    text = scrape(Tally(lambda: Health(pending=3, dropped=2, failures=7, degraded="disk full")))
    assert "usher_ledger_pending_lines 3.0" in text
    assert "usher_ledger_dropped_lines_total 2.0" in text
    assert "usher_ledger_failures_total 7.0" in text
    assert "usher_ledger_degraded 1.0" in text
