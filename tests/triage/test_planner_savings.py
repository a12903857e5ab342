"""The benchmark's claims on one conversation of 150 turns."""

import pytest

from bench.triage import compare


@pytest.mark.slow
def test_triage_saves_and_forgets_nothing_that_matters() -> None:
    """Cheaper than no triage and than a rolling summary, with and without a cache."""
    figures = compare(1)
    assert figures["turns"] >= 100
    assert figures["tokens"] >= 120_000
    assert figures["triage_warm"] <= 0.8
    assert figures["triage_plain"] <= 0.5
    assert figures["triage_warm"] < figures["summary_warm"]
    assert figures["triage_plain"] < figures["summary_plain"]
    assert figures["facts"] >= 0.95
    assert figures["rules"] == 1.0
