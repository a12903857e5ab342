"""`usher calibrate`, as its user sees it."""

import os
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from proxy.errors import ConfigError
from proxy.judge.calibrate import Target, read_lock
from proxy.judge.cli import Order, app, choose_target, run

ROWS = [
    {"question": "memory_request", "probability": p, "label": p > 0.5}
    for p in (0.95, 0.9, 0.6, 0.3, 0.1)
]


def examples(tmp_path: Path, rows: Any = ROWS) -> Path:
    file = tmp_path / "labelled.jsonl"
    file.write_bytes(b"\n".join(orjson.dumps(row) for row in rows))
    return file


def test_the_report_in_words(tmp_path: Path) -> None:
    """Threshold, what it does, and the reliability table."""
    result = CliRunner().invoke(app, [str(examples(tmp_path)), "--precision", "0.9"])
    assert result.exit_code == 0, result.output
    assert "memory_request: 5 examples, 3 true, 0 unanswered, answered by a file" in result.output
    assert "threshold 0.600: precision 1.000, recall 1.000" in result.output
    assert "0.9–1.0:     2 examples, said 0.93, true 1.00" in result.output


def test_the_report_as_data_and_the_lock_file(tmp_path: Path) -> None:
    """What the next start of the gateway reads."""
    out = tmp_path / "lock.json"
    arguments = [str(examples(tmp_path)), "--out", str(out), "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    report = orjson.loads(result.output)["questions"]["memory_request"]
    assert (report["threshold"], report["recall"], report["unanswered"]) == (0.6, 1.0, 0)
    assert read_lock(out.read_bytes())["memory_request"].threshold == 0.6


def test_a_target_out_of_reach_is_said(tmp_path: Path) -> None:
    """A script sees it by the exit code, and the thresholds of before stay in force."""
    rows = [{"question": "memory_request", "probability": 0.9, "label": False}]
    out = tmp_path / "lock.json"
    out.write_text("as before")
    file = examples(tmp_path, rows)
    result = CliRunner().invoke(app, [str(file), "--precision", "1", "--out", str(out)])
    assert "no threshold reaches precision 1.0" in result.output
    assert result.exit_code == 1
    assert out.read_text() == "as before"


def test_examples_are_judged_by_what_is_built_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a key: the model that the caller hands in."""
    rows = [{"latest": text, "label": text == "yes"} for text in ("yes", "no")]
    models = {"memory_request": lambda state: 0.9 if state["latest"] == "yes" else 0.2}
    order = Order(examples(tmp_path, rows), Target("recall", 1.0), "memory_request", models=models)
    run(None, dict(os.environ), order, as_json=True)
    found = orjson.loads(capsys.readouterr().out)["questions"]["memory_request"]
    assert (found["threshold"], found["model"], found["unanswered"]) == (0.9, "embedded", 0)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """One line instead of a traceback."""
    with pytest.raises(ConfigError, match="No such file"):
        run(None, {}, Order(tmp_path / "none", Target("recall", 1.0)), as_json=False)


@pytest.mark.parametrize(("precision", "recall"), [(0.9, 0.9), (0.0, None), (None, 1.5)])
def test_targets_that_make_no_sense(precision: float | None, recall: float | None) -> None:
    """Both at once, nothing, and more than all."""
    with pytest.raises(ConfigError):
        choose_target(precision, recall)
    assert choose_target(None, None) == Target("recall", 0.97)
