"""Whether small talk stays free of schemas."""

from pathlib import Path

from proxy.evals.abstain import evaluate_abstention
from proxy.evals.rankers import open_ranker
from tests.evals.conftest import write_lines


def test_kept_and_silent(folder: Path) -> None:
    """A request is kept, thanks are silent, by language."""
    rows: list[dict[str, object]] = [
        {"query": "current weather of the city", "needs_tool": True},
        {"query": "danke schön", "needs_tool": False, "lang": "german"},
    ]
    write_lines(folder / "queries.jsonl", rows)
    with open_ranker("lexical", None) as ranker:
        figures = evaluate_abstention(folder, folder, "lexical", ranker)
    assert (figures["kept"], figures["silent"]) == (1.0, 1.0)
    assert figures["silent_by_language"] == {"german": 1.0}


def test_what_the_set_says_nothing_about_is_null(folder: Path) -> None:
    """Nobody was in need, so no share of them got tools."""
    write_lines(folder / "queries.jsonl", [{"query": "thanks", "needs_tool": False}])
    with open_ranker("lexical", None) as ranker:
        figures = evaluate_abstention(folder, folder, "lexical", ranker)
    assert (figures["kept"], figures["silent"]) == (None, 1.0)
    assert figures["predicted"] == {"needing": None, "others": 0.0}
