"""What each signal is worth."""

from pathlib import Path

from proxy.evals.ablation import evaluate_ablation


def test_every_signal_is_left_out_once(folder: Path) -> None:
    """One row with all, one per signal, one with none."""
    figures = evaluate_ablation(folder)
    names = [row["without"] for row in figures["rows"]]
    assert (names[0], names[-1]) == ("nothing", "everything")
    assert {"verb", "pair", "acronym", "sentences", "boilerplate"} <= set(names)
    assert figures["rows"][0]["recall@1"] == 0.5
