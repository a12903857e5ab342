"""`usher memory import` and `forget`: what must not happen at a terminal."""

import json
from io import StringIO
from pathlib import Path

import pytest

from proxy import cli

HOME = '{"key": "home", "value": "Lives in Porto", "token_count": 9}\n'
FOOD = '{"key": "Food", "value": "Eats no nuts"}\n\n'


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command that must succeed prints."""
    assert cli.run(["memory", *words]) == 0
    return capsys.readouterr().out


def refuse(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command that must fail complains of."""
    assert cli.run(["memory", *words]) == 1
    return capsys.readouterr().err


def write(folder: Path, name: str, text: str) -> str:
    """A file's path."""
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return str(file)


@pytest.fixture
def kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """A file with two memories, which ali has."""
    file = write(tmp_path, "ali.jsonl", HOME + FOOD)
    assert ask(capsys, "import", file, "--user", "ali") == "2 of 2 memories stored\n"
    return file


@pytest.mark.usefixtures("kept")
def test_counts_in_a_file_are_not_believed(capsys: pytest.CaptureFixture[str]) -> None:
    """Tokens are counted anew, and keys are stored in their own form."""
    data = json.loads(ask(capsys, "show", "--user", "ali", "--json"))
    counts = {row["key"]: row["token_count"] for row in data["memories"]}
    assert list(counts) == ["food", "home"]
    assert counts["home"] != 9
    assert data["total_tokens"] == sum(counts.values())


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    "whose",
    [
        ("--user", "bob"),
        ("--user", "ali", "--tenant", "other"),
        ("--user", "ali", "--scope", "app:chat"),
    ],
)
def test_nobody_else_has_them(capsys: pytest.CaptureFixture[str], whose: tuple[str, ...]) -> None:
    """Another user, tenant or application has nothing."""
    assert ask(capsys, "show", *whose) == "nothing is remembered of this user\n"


def test_the_same_again_stores_nothing(kept: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A second import of a file changes nothing and says so."""
    assert ask(capsys, "import", kept, "--user", "ali") == "0 of 2 memories stored\n"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("no json", "a line of the file is no memory"),
        ('{"key": "note", "value": " "}', "note: cannot be stored: empty"),
        ('{"key": "note", "value": "password: hunter2hunter2"}', "note: cannot be stored: secret"),
    ],
)
def test_one_bad_line_stops_the_import(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, reason: str
) -> None:
    """The reason is one line without the value; the good line is not stored either."""
    file = write(tmp_path, "bad.jsonl", HOME + line)
    assert refuse(capsys, "import", file, "--user", "ali") == f"usher: {reason}\n"
    assert ask(capsys, "show", "--user", "ali").startswith("nothing")


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("valid_keys: [home]", "Food: cannot be stored: invalid_key"),
        ("token_limit: 5", "food: cannot be stored: over memory.token_limit"),
    ],
)
def test_an_import_keeps_to_the_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], setting: str, reason: str
) -> None:
    """What fits is not stored without what does not: all of a file or none."""
    config = write(tmp_path, "usher.yaml", f"memory: {{{setting}}}")
    file = write(tmp_path, "ali.jsonl", HOME + FOOD)
    told = refuse(capsys, "import", file, "--user", "ali", "--config", config)
    assert told == f"usher: {reason}\n"
    assert ask(capsys, "show", "--user", "ali").startswith("nothing")


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """One line, no trace."""
    told = refuse(capsys, "import", "gone.jsonl", "--user", "ali")
    assert told == "usher: gone.jsonl: no such file or directory\n"


@pytest.mark.usefixtures("kept")
def test_forgetting_asks_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever says no keeps everything."""
    monkeypatch.setattr("sys.stdin", StringIO("n\n"))
    assert cli.run(["memory", "forget", "--user", "ali"]) == 130
    capsys.readouterr()
    assert len(ask(capsys, "export", "--user", "ali").splitlines()) == 2
