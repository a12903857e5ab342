"""How well and how fast the right tool is found."""

from pathlib import Path

from proxy.evals.rankers import open_ranker
from proxy.evals.retrieval import evaluate_retrieval
from proxy.wire import JSONObject
from tests.evals.conftest import write_lines


def _evaluate(folder: Path) -> JSONObject:
    with open_ranker("lexical", None) as ranker:
        return evaluate_retrieval(folder, "lexical", ranker)


def test_the_figures(folder: Path) -> None:
    """Two of three queries are answered, one of them needs two tools."""
    figures = _evaluate(folder)
    assert figures["recall"] == {"1": 0.5, "3": 0.6667, "5": 0.6667, "10": 0.6667}
    assert (figures["ranker"], figures["queries"], figures["tools"]) == ("lexical", 3, 3)
    assert figures["query_ms"]["p95"] >= figures["query_ms"]["p50"] > 0


def test_an_empty_catalogue_finds_nothing(folder: Path) -> None:
    """No tools is a result, not an error."""
    write_lines(folder / "catalogue.jsonl", [])
    assert _evaluate(folder)["recall"]["10"] == 0.0


def test_no_queries_no_figures(folder: Path) -> None:
    """A set without queries measures nothing."""
    write_lines(folder / "queries.jsonl", [])
    assert _evaluate(folder)["mrr"] == 0.0
