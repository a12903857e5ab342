"""Captured searches become a set that `usher eval` reads."""

from pathlib import Path

import orjson
import pytest

from proxy.errors import ConfigError
from proxy.evals.curate import Candidate, curate, read_captured
from proxy.evals.rankers import open_ranker
from proxy.evals.retrieval import evaluate_retrieval
from proxy.evals.sets import read_queries
from tests.evals.conftest import Rows, write_lines
from tests.tools.samples import city_tools

NAMES = [tool["function"]["name"] for tool in city_tools()]
AT = "2026-11-30T12:00:00+00:00"
STORM: Rows = [
    {"query": "storm warnings", "tool": "weather_alerts", "others": ["mail_send"], "at": AT}
]
BILL: Rows = [{"query": "pay the bill", "tool": "billing_pay", "others": [], "at": AT}]


def accept(_: Candidate) -> bool:
    return True


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    path = tmp_path / "tools.json"
    path.write_bytes(orjson.dumps(city_tools()))
    return path


def captured(tmp_path: Path, rows: Rows) -> Path:
    path = tmp_path / "captured.jsonl"
    write_lines(path, rows)
    return path


def test_a_set_is_made_and_can_be_measured(tmp_path: Path, tools: Path) -> None:
    """What was captured is measured like every other set."""
    folder = tmp_path / "own"
    told = curate(captured(tmp_path, STORM), folder, tools, accept)
    assert (told["added"], told["queries"], told["tools"]) == (1, 1, 6)
    with open_ranker("lexical", None) as ranker:
        assert evaluate_retrieval(folder, "lexical", ranker)["recall"]["1"] == 1.0


def test_the_same_query_counts_once(tmp_path: Path, tools: Path) -> None:
    """Spelled otherwise it is the same; other tools that it ended in meet the same slot."""
    other: Rows = [{"query": " Storm  Warnings", "tool": "weather_now", "others": [], "at": AT}]
    curate(captured(tmp_path, STORM * 3 + other), tmp_path / "own", tools, accept)
    (query,) = read_queries(tmp_path / "own", set(NAMES))
    assert query.text == "storm warnings"
    assert query.gold == (frozenset({"weather_alerts", "weather_now"}),)


def test_a_set_grows(tmp_path: Path, tools: Path) -> None:
    """A second run needs no tools, keeps what was there and adds what is new."""
    folder = tmp_path / "own"
    curate(captured(tmp_path, STORM), folder, tools, accept)
    mail: Rows = [{"query": "write to Ann", "tool": "mail_send", "others": [], "at": AT}]
    told = curate(captured(tmp_path, STORM + mail), folder, None, accept)
    assert (told["known_queries"], told["added"], told["queries"]) == (1, 1, 2)
    assert [row.text for row in read_queries(folder, set(NAMES))] == [
        "storm warnings",
        "write to Ann",
    ]


def test_rejected_and_unknown_ones_stay_out(tmp_path: Path, tools: Path) -> None:
    """The operator's word counts, and a tool that is gone cannot be found."""
    seen: list[Candidate] = []

    def refuse(candidate: Candidate) -> bool:
        seen.append(candidate)
        return False

    told = curate(captured(tmp_path, STORM + BILL), tmp_path / "own", tools, refuse)
    assert (told["unknown_tools"], told["rejected"], told["added"]) == (1, 1, 0)
    assert (list(seen[0].tools), list(seen[0].others)) == (["weather_alerts"], ["mail_send"])


def test_broken_lines_are_counted(tmp_path: Path) -> None:
    """A full disk may cut a line short; the others are still good."""
    path = tmp_path / "captured.jsonl"
    path.write_bytes(orjson.dumps(STORM[0]) + b'\n\n[1]\n{"query":" ","tool":"x"}\n{"query":"sto')
    lines, malformed = read_captured(path)
    assert len(lines) == 1
    assert malformed == 3


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"{", "no `tools` array"), (b'{"tools":1}', "no `tools` array"), (b"[]", "--tools FILE")],
)
def test_tools_that_are_none_are_refused(tmp_path: Path, content: bytes, complaint: str) -> None:
    """One line says what is wrong, and nothing is written."""
    path = tmp_path / "tools.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=complaint):
        curate(captured(tmp_path, STORM), tmp_path / "own", path, accept)
    assert not (tmp_path / "own").exists()


def test_missing_and_broken_files_are_one_line(tmp_path: Path, tools: Path) -> None:
    """Nothing to read, or a set that is none, is said plainly."""
    with pytest.raises(ConfigError, match="cannot read"):
        curate(tmp_path / "none.jsonl", tmp_path / "own", tools, accept)
    (tmp_path / "queries.jsonl").write_bytes(b"oops")
    with pytest.raises(ConfigError, match="not a JSON object on every line"):
        curate(captured(tmp_path, STORM), tmp_path, tools, accept)
