"""Whether the second tool of a task is foreseen."""

from pathlib import Path

import pytest

from proxy.errors import ConfigError
from proxy.evals.next_tool import evaluate_next_tool
from proxy.evals.rankers import open_ranker
from proxy.wire import JSONObject
from tests.evals.conftest import write_lines


def _evaluate(folder: Path) -> JSONObject:
    with open_ranker("lexical", None) as ranker:
        return evaluate_next_tool(folder, "lexical", ranker)


def test_siblings_and_words_find_the_next(folder: Path) -> None:
    """After the weather the route of the same server comes, then what the task says."""
    tasks: list[dict[str, object]] = [
        {"task": "weather in the city, then plan a route", "tools": ["w", "r", "w"]}
    ]
    write_lines(folder / "conversations.jsonl", tasks)
    figures = _evaluate(folder)
    assert (figures["steps"], figures["hit"]["1"]) == (1, 1.0)


def test_an_unknown_tool_is_named(folder: Path) -> None:
    """A label that the catalogue lacks is a mistake of the set."""
    write_lines(folder / "conversations.jsonl", [{"task": "a", "tools": ["w", "nope"]}])
    with pytest.raises(ConfigError, match="no tool 'nope'"):
        _evaluate(folder)


def test_no_steps_are_no_figures(folder: Path) -> None:
    """Where every task takes one tool there is nothing to foresee, and no 0."""
    write_lines(folder / "queries.jsonl", [{"query": "a", "gold": [["w"]]}])
    write_lines(folder / "conversations.jsonl", [{"task": "a", "tools": ["w", "w"]}])
    for _ in range(2):
        with pytest.raises(ConfigError, match="no task takes a second tool"):
            _evaluate(folder)
        (folder / "conversations.jsonl").unlink(missing_ok=True)
