"""Results as text for people and as JSON for programs."""

import json

import pytest

from proxy.commands.output import print_json, print_table, print_text


def test_json_keeps_every_script(capsys: pytest.CaptureFixture[str]) -> None:
    """Data is printed as it is, in any script."""
    print_json({"prompt": "天気", "cost": None})
    out = capsys.readouterr().out
    assert "天気" in out
    assert json.loads(out) == {"prompt": "天気", "cost": None}


def test_text_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Brackets are text, not markup."""
    print_text("[red]x[/red]")
    assert capsys.readouterr().out == "[red]x[/red]\n"


def test_a_table_shows_what_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers are grouped, an unknown value is a dash and never a zero."""
    print_table(("model", "tokens", "ok"), [("[m]", 12345, True), ("n", None, False)])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["model", "tokens", "ok"], ["[m]", "12,345", "yes"], ["n", "–", "no"]]


def test_a_long_line_is_not_cut_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal nothing is folded at 80 columns."""
    print_table(("name",), [("x" * 120,)])
    assert "x" * 120 in capsys.readouterr().out
