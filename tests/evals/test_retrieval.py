"""How well and how fast the right tool is found."""

from pathlib import Path

import pytest

from proxy.errors import ConfigError
from proxy.evals.rankers import open_ranker
from proxy.evals.retrieval import evaluate_retrieval
from proxy.wire import JSONObject
from tests.evals.conftest import QUERIES, TOOLS, write_lines

KEYS = {"set", "ranker", "queries", "recall", "mrr", "ndcg10", "index_ms", "query_ms"}


def _evaluate(folder: Path) -> JSONObject:
    with open_ranker("lexical", None) as ranker:
        return evaluate_retrieval(folder, "lexical", ranker)


def test_the_figures(folder: Path) -> None:
    """Two of three queries are answered, one of them needs two tools."""
    figures = _evaluate(folder)
    assert figures["recall"] == {"1": 0.5, "3": 0.6667, "5": 0.6667, "10": 0.6667}
    assert (figures["ranker"], figures["queries"]) == ("lexical", 3)
    assert figures["query_ms"]["p95"] >= figures["query_ms"]["p50"] > 0


def test_programs_get_these_keys(folder: Path) -> None:
    """The shape is a contract: nothing is missing and nothing is added."""
    figures = _evaluate(folder)
    assert set(figures) == KEYS
    assert set(figures["query_ms"]) == {"p50", "p95"}


def test_an_empty_catalogue_is_none(folder: Path) -> None:
    """No tools is a file that went wrong, not a ranker that did."""
    write_lines(folder / "catalogue.jsonl", [])
    with pytest.raises(ConfigError, match=r"catalogue\.jsonl: there is nothing in it"):
        _evaluate(folder)


def test_no_queries_no_figures(folder: Path) -> None:
    """A set without queries measures nothing, and does not say 0."""
    write_lines(folder / "queries.jsonl", [])
    with pytest.raises(ConfigError, match=r"queries\.jsonl: there is nothing in it"):
        _evaluate(folder)


def test_a_catalogue_of_one_has_figures(folder: Path) -> None:
    """The smallest set."""
    write_lines(folder / "catalogue.jsonl", TOOLS[:1])
    write_lines(folder / "queries.jsonl", QUERIES[:1])
    assert _evaluate(folder)["recall"]["1"] == 1.0
