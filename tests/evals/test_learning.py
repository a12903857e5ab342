"""What learning from use is worth on a labelled set."""

from pathlib import Path

from proxy.evals.learning import evaluate_learning
from proxy.evals.rankers import open_ranker
from tests.evals.conftest import TOOLS, Rows, write_lines

QUERIES: Rows = [
    {"qid": "0", "query": "current weather in Oslo", "gold": [["w"]]},
    {"qid": "1", "query": "current weather in Oslo today", "gold": [["w"]]},
    {"qid": "2", "query": "a route between two places", "gold": [["r"]]},
    {"qid": "3", "query": "send an email", "gold": [["m"]]},
]


def test_half_is_learned_and_the_other_half_asked(folder: Path) -> None:
    """A tool without a name or text of its own is found by what it was used for."""
    write_lines(folder / "catalogue.jsonl", TOOLS)
    write_lines(folder / "queries.jsonl", QUERIES)
    with open_ranker("lexical", None) as ranker:
        figures = evaluate_learning(folder, "lexical", ranker, mute=1)
    rows = {row["queries"]: row for row in figures["rows"]}
    assert figures["learned"] == 2
    assert rows["of silenced tools"]["before"]["recall@5"] == 0.0
    assert rows["of silenced tools"]["learned"]["recall@5"] == 1.0
    assert rows["of all others"]["learned"] == rows["of all others"]["before"]
    assert rows["like a learned one"]["count"] == 1


def test_nothing_silenced_is_nothing_apart(folder: Path) -> None:
    """Then there are no rows about it."""
    write_lines(folder / "queries.jsonl", QUERIES)
    with open_ranker("lexical", None) as ranker:
        figures = evaluate_learning(folder, "lexical", ranker)
    assert [row["queries"] for row in figures["rows"]] == [
        "all",
        "like a learned one",
        "learned ones again",
    ]


def test_what_was_learned_several_times_is_asked_again(folder: Path) -> None:
    """Then even a tool without a name or text is found by the same question."""
    write_lines(folder / "queries.jsonl", QUERIES)
    with open_ranker("lexical", None) as ranker:
        figures = evaluate_learning(folder, "lexical", ranker, mute=1, times=3)
    (row,) = [row for row in figures["rows"] if row["queries"] == "learned ones again"]
    assert (row["count"], row["before"]["recall@5"], row["learned"]["recall@5"]) == (2, 0.5, 1.0)
