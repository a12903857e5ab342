"""`usher eval` prints figures as text or JSON, and errors as one line."""

from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from proxy.errors import ConfigError
from proxy.evals.cli import app, confirm
from proxy.evals.curate import Candidate
from tests.evals.conftest import write_lines

RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def _data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("USHER_DATA", str(tmp_path))


def test_retrieval_as_json(folder: Path) -> None:
    """Programs get the object that the documentation shows."""
    result = RUNNER.invoke(app, ["retrieval", "--set", str(folder), "--json"])
    assert orjson.loads(result.stdout)["recall"]["1"] == 0.5


def test_retrieval_as_text(folder: Path) -> None:
    """People get a line per figure."""
    result = RUNNER.invoke(app, ["retrieval", "--set", str(folder)])
    assert "recall  1=0.5" in result.stdout


def test_next_tool_and_abstain(folder: Path) -> None:
    """The other two kinds of figures."""
    figures = RUNNER.invoke(app, ["next-tool", "--set", str(folder), "--json"]).stdout
    assert orjson.loads(figures)["steps"] == 1
    write_lines(folder / "queries.jsonl", [{"query": "thanks", "needs_tool": False}])
    words = ["abstain", "--set", str(folder), "--ranker", "lexical", "--json"]
    assert orjson.loads(RUNNER.invoke(app, words).stdout)["silent"] == 1.0


def test_regress_updates_and_checks(folder: Path) -> None:
    """A baseline is written from today's figures and then holds."""
    path = folder / "baseline.json"
    entry = {"set": ".", "kind": "retrieval", "ranker": "lexical", "figures": {"1": 1.0}}
    path.write_bytes(orjson.dumps({"tolerance": 0.01, "sets": [entry]}))
    failed = RUNNER.invoke(app, ["regress", "--file", str(path)])
    assert isinstance(failed.exception, ConfigError)
    assert RUNNER.invoke(app, ["regress", "--file", str(path), "--update"]).exit_code == 0
    assert RUNNER.invoke(app, ["regress", "--file", str(path)]).exit_code == 0


def test_ablation_as_text_and_json(folder: Path) -> None:
    """A table for people, the rows for programs."""
    words = ["ablation", "--set", str(folder)]
    assert "  nothing  R@1 0.5000" in RUNNER.invoke(app, words).stdout
    assert len(orjson.loads(RUNNER.invoke(app, [*words, "--json"]).stdout)["rows"]) > 10


def test_curate_asks_at_a_terminal_only(folder: Path) -> None:
    """Without one, `--yes` is an operator's word for all of them."""
    captured = folder / "captured.jsonl"
    write_lines(captured, [{"query": "current weather", "tool": "w", "others": ["m"], "at": ""}])
    words = ["curate", "--from", str(captured), "--set", str(folder), "--json"]
    missing = ["curate", "--from", str(folder / "gone.jsonl"), "--set", str(folder)]
    assert "cannot read" in str(RUNNER.invoke(app, missing).exception)
    refused = RUNNER.invoke(app, words)
    assert isinstance(refused.exception, ConfigError)
    assert "--yes" in str(refused.exception)
    assert orjson.loads(RUNNER.invoke(app, [*words, "--yes"]).stdout)["added"] == 1


def test_a_candidate_is_shown_before_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The question names the query, its tools and what else was shown; the answer decides."""
    asked: list[str] = []

    def answer(question: str, **_: object) -> bool:
        asked.append(question)
        return False

    monkeypatch.setattr("typer.confirm", answer)
    candidate = Candidate("storm\x1b[2Jwarnings", {"weather_alerts": None}, {"mail_send": None})
    assert confirm(candidate) is False
    assert "storm [2Jwarnings\n  -> weather_alerts  (also shown: mail_send)" in asked[0]
