"""`usher memory …`."""

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from proxy.cli import run

Say = Callable[..., int]


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Say:
    """Runs one command line on a data folder of its own."""
    monkeypatch.setenv("USHER_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return lambda *words: run(["memory", *words])


def test_out_and_in_again(say: Say, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is imported is shown and exported; forgetting leaves nothing."""
    lines = tmp_path / "lines.jsonl"
    lines.write_bytes(orjson.dumps({"key": "city", "value": "The user lives in Rome."}) + b"\n")
    assert say("import", str(lines), "--user", "ali") == 0
    assert say("show", "--user", "ali") == 0
    assert "The user lives in Rome." in capsys.readouterr().out
    assert say("export", "--user", "ali") == 0
    assert orjson.loads(capsys.readouterr().out)["key"] == "city"
    assert say("forget", "--user", "ali", "--yes") == 0
    assert say("show", "--user", "ali", "--json") == 0
    assert '"memories": []' in capsys.readouterr().out


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b'{"key":"5","value":"x"}', b'{"key":"a","value":""}']
)
def test_what_is_no_memory(
    say: Say, tmp_path: Path, capsys: pytest.CaptureFixture[str], line: bytes
) -> None:
    """One line says what is wrong, and nothing is stored."""
    lines = tmp_path / "lines.jsonl"
    lines.write_bytes(line)
    assert say("import", str(lines), "--user", "ali") == 1
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.item("memory/user-id")
def test_another_id(say: Say, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was remembered under an earlier id belongs to the new one; the same id is an error."""
    lines = tmp_path / "lines.jsonl"
    lines.write_bytes(orjson.dumps({"key": "city", "value": "The user lives in Rome."}) + b"\n")
    assert say("import", str(lines), "--user", "ali@old") == 0
    capsys.readouterr()
    assert say("merge", "--from", "ali@old", "--user", "ali", "--json") == 0
    assert orjson.loads(capsys.readouterr().out) == {"moved": 1}
    assert say("show", "--user", "ali@old", "--json") == 0
    assert '"memories": []' in capsys.readouterr().out
    assert say("show", "--user", "ali") == 0
    assert "Rome" in capsys.readouterr().out
    assert say("merge", "--from", "ali", "--user", "ali") == 1
