"""The benchmark's claims on one conversation of 150 turns."""

import pytest

from bench.triage import compare


@pytest.mark.slow
def test_triage_saves_and_forgets_nothing_that_matters() -> None:
    """Cheaper than no triage and than a rolling summary, with and without a cache."""
    figures = {name: values[0] for name, values in compare(1).items()}
    assert figures["turns"] >= 100
    assert figures["tokens"] >= 120_000
    assert figures["triage_warm"] <= 0.8
    assert figures["triage_plain"] <= 0.5
    assert figures["triage_warm"] < figures["summary_warm"]
    assert figures["triage_plain"] < figures["summary_plain_half"] < figures["summary_plain"]
    assert figures["triage_plain_same_trigger"] < figures["summary_plain"]
    assert min(figures["facts"], figures["facts_plain"]) >= 0.95
    assert figures["rules"] == figures["rules_plain"] == 1.0
