"""JSON lines are read whole or not at all."""

from pathlib import Path

import pytest

from proxy.errors import ConfigError
from proxy.evals.lines import read_lines


def test_objects_come_with_their_place(tmp_path: Path) -> None:
    """Empty lines count and say nothing; a line may be long."""
    path = tmp_path / "rows.jsonl"
    long = "x" * 2_000_000
    path.write_text(f'{{"a": 1}}\n\n{{"b": "{long}"}}\r\n')
    assert read_lines(path) == [({"a": 1}, "rows.jsonl line 1"), ({"b": long}, "rows.jsonl line 3")]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "there is nothing in it"),
        (b"\n \n", "there is nothing in it"),
        (b'[\n{"a": 1}\n]', "line 1: not an object; write one object a line, and no array"),
        (b'{"a": 1}\n"b"', "line 2: not an object"),
        (b'{"a": 1}\n{"a"', "line 2: not JSON"),
        (b'{"a": "\xff"}', "line 1: not JSON"),
        (b'{"a":' * 5_000, "line 1: not JSON"),
    ],
)
def test_anything_else_is_one_line(tmp_path: Path, content: bytes, complaint: str) -> None:
    """The file, the line, what is wrong."""
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"rows.jsonl.*{complaint}"):
        read_lines(path)
