"""`usher usage`: the books at a terminal."""

import asyncio
import json
import sqlite3
import time
from pathlib import Path

import pytest

from proxy import cli
from proxy.commands.usage import Question, describe_savings, read_question
from proxy.ledger.location import ledger_url
from proxy.ledger.status import Options
from proxy.ledger.usage import Row
from proxy.ledger.writer import SqlLedger
from proxy.wire import JSONObject


def make_row(context: str, prompt: int | None, cost: int | None) -> Row:
    """One call, with what the model used and what it cost."""
    return Row(
        request_id=f"req_{context}", tenant="t", key="k", user=None, context=context, round=0,
        provider="p", model="m", answered_model=None, prompt_tokens=prompt, cached_tokens=None,
        completion_tokens=3, reasoning_tokens=None, cost_nano_usd=cost, cost_source=None,
        started_at=time.time() - 7200, latency_ms=None, tools_sent=None, tools_deferred=None,
        tokens_avoided=None, outcome="ok",
    )  # fmt: skip


@pytest.fixture
def recorded(tmp_path: Path) -> None:
    """A ledger with two calls of two contexts, one of unknown size and cost."""

    async def record() -> None:
        ledger = SqlLedger(ledger_url(None, tmp_path / "usher-data"), Options())
        await ledger.start()
        ledger.record(make_row("main", 1000, 2_500_000))
        ledger.record(make_row("classification", None, None))
        await ledger.aclose()

    asyncio.run(record())


@pytest.mark.usefixtures("recorded")
def test_totals_by_context(capsys: pytest.CaptureFixture[str]) -> None:
    """Both books, apart; what is unknown is a dash, not a zero."""
    assert cli.run(["usage", "--by", "context"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["main", "1", "1,000", "–", "3", "–", "–", "0.0025"] in lines
    assert ["classification", "1", "–", "–", "3", "–", "–", "–"] in lines


@pytest.mark.usefixtures("recorded")
def test_totals_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    """--json gives the same sums, unknown ones as null."""
    assert cli.run(["usage", "--by", "model,context", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    rows = {row["context"]: row for row in data["usage"]}
    assert rows["main"]["prompt_tokens"] == 1000
    assert rows["classification"]["prompt_tokens"] is None


@pytest.mark.usefixtures("recorded")
def test_a_span_leaves_older_calls_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Calls of two hours ago are not part of the last hour, but of the last three."""
    assert cli.run(["usage", "--since", "1h"]) == 0
    assert capsys.readouterr().out == "no calls recorded yet\n"
    assert cli.run(["usage", "--since", "3h"]) == 0
    assert "main" in capsys.readouterr().out


@pytest.mark.usefixtures("recorded")
def test_asking_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor does it wait for somebody who writes: the same books can be read by anybody."""
    path = tmp_path / "usher-data" / "usher.db"
    before = path.stat().st_mtime_ns
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert cli.run(["usage", "--by", "context"]) == 0
    assert "main" in capsys.readouterr().out
    holder.close()
    assert path.stat().st_mtime_ns == before


@pytest.mark.usefixtures("recorded")
def test_an_old_file_is_upgraded_to_be_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file without a schema gets one, and has nothing to tell."""
    path = tmp_path / "usher-data" / "usher.db"
    path.unlink()
    path.touch()
    assert cli.run(["usage"]) == 0
    assert capsys.readouterr().out == "no calls recorded yet\n"


def test_asking_creates_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a ledger there is nothing to show and nothing is written."""
    assert cli.run(["usage"]) == 0
    assert capsys.readouterr().out == "no calls recorded yet\n"
    assert not list(tmp_path.iterdir())


def test_savings_are_one_sentence() -> None:
    """What deferral and prediction did, summed over groups."""
    groups: list[JSONObject] = [
        {"turns": 2, "tokens_avoided_estimate": 200_000, "hits": 1, "unused": 4},
        {"turns": 1, "tokens_avoided_estimate": None, "hits": None, "unused": None},
    ]
    assert describe_savings(groups) == (
        "3 turns, about 200,000 tokens of tool schemas kept out of prompts; "
        "1 of 5 predicted tools were called"
    )


def test_savings_that_are_not_counted_are_not_zero() -> None:
    """The first turn with a new catalogue may end before its tools are counted: that is said."""
    first: JSONObject = {"turns": 1, "tokens_avoided_estimate": None, "turns_without_estimate": 1}
    later: JSONObject = {"turns": 3, "tokens_avoided_estimate": 900, "turns_without_estimate": 0}
    assert describe_savings([first]).startswith(
        "1 turns, tokens of tool schemas kept out of prompts: not counted yet for 1 of 1 turns; "
    )
    assert describe_savings([first, later]).startswith(
        "4 turns, about 900 tokens of tool schemas kept out of prompts "
        "(not counted yet for 1 of 4 turns); "
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--by", "colour"], "usher: --by colour: use model, context, key, user, day"),
        (["--since", "soon"], "usher: --since soon: use a span such as 12h, 7d or 2w"),
    ],
)
def test_wrong_words_are_named(
    capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    """What can't be grouped by, or is no span, is one line with what would be right."""
    assert cli.run(["usage", *words]) == 1
    assert capsys.readouterr().err.startswith(message)


def test_a_span_counts_back_from_now() -> None:
    """Two days are 172,800 seconds before now."""
    query = read_question(Question(by="day", since="2d", tenant="t"), now=1_000_000.0)
    assert (query.by, query.since, query.tenant) == (("day",), 1_000_000.0 - 172_800, "t")
