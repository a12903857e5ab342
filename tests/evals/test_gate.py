"""`usher eval gate`."""

from pathlib import Path

import orjson
import pytest

from proxy.errors import ConfigError
from proxy.evals.gate import dump, evaluate_gate, open_gate, read_rows

ROWS = [
    {"id": "a", "latest": "remember x", "label": 1, "lang": "en", "kind": "remember"},
    {"id": "b", "latest": "hello", "label": 0, "lang": "en", "kind": "chat"},
    {"latest": "remember the milk", "label": 0, "lang": "de", "doubtful": True},
]


def write(folder: Path, *lines: object) -> Path:
    path = folder / "rows.jsonl"
    path.write_bytes(b"\n".join(orjson.dumps(line) for line in lines))
    return path


def test_figures(tmp_path: Path) -> None:
    """Recall and false positives, in all and by language; doubtful rows apart."""
    figures, judged = evaluate_gate(write(tmp_path, *ROWS), lambda s: float("remember" in str(s)))
    assert (figures["rows"], figures["recall"], figures["false_positive_rate"]) == (3, 1.0, 0.0)
    assert figures["doubtful"]["false_positive_rate"] == 1.0
    assert figures["by_lang"]["en"]["positives"] == 1
    assert orjson.loads(next(dump(judged))) == {"id": "a", "score": 1.0, "label": 1}


@pytest.mark.parametrize(
    "line",
    [3, {"label": 1}, {"latest": "x", "label": 2}, {"latest": "x", "label": []},
     {"latest": "x", "label": 0, "context": "y"}],
)  # fmt: skip
def test_rows_that_are_none(tmp_path: Path, line: object) -> None:
    """The file and the line are named."""
    with pytest.raises(ConfigError, match=r"rows.jsonl line 1"):
        read_rows(write(tmp_path, line))


def test_no_rows_are_no_figures(tmp_path: Path) -> None:
    """An empty file, and one that is not there."""
    with pytest.raises(ConfigError, match="nothing in it"):
        read_rows(write(tmp_path))
    with pytest.raises(ConfigError, match="cannot read"):
        read_rows(tmp_path / "gone.jsonl")


def test_the_form_without_numpy() -> None:
    """It can be measured by itself."""
    assert open_gate("words")({"latest": "remember that I am deaf"}) is not None
