"""A captured search is one line in a private file, and never trouble."""

from pathlib import Path

import orjson
import pytest

from proxy.observe.capture import Capture


def test_a_line_says_query_names_and_time(tmp_path: Path) -> None:
    """Nothing else is written, and the file is the owner's alone."""
    path = tmp_path / "captured.jsonl"
    path.touch(0o644)
    capture = Capture(path, pytest.fail, lambda: 0.0)
    capture.write("storm warnings", "weather_alerts", ("weather_now",))
    capture.write("mail", "mail_send", ())
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    assert lines[0] == {
        "query": "storm warnings",
        "tool": "weather_alerts",
        "others": ["weather_now"],
        "at": "1970-01-01T00:00:00+00:00",
    }
    assert len(lines) == 2
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_failure_is_told_once(tmp_path: Path) -> None:
    """A full or missing disk ends no turn and fills no log."""
    told: list[str] = []
    capture = Capture(tmp_path / "missing" / "file", told.append)
    capture.write("a", "b", ())
    capture.write("a", "b", ())
    assert told == ["No such file or directory"]


def test_text_that_is_no_unicode_is_a_failure_too(tmp_path: Path) -> None:
    """A model's half of a surrogate pair cannot be written."""
    told: list[str] = []
    Capture(tmp_path / "file", told.append).write("\ud800", "b", ())
    assert len(told) == 1
