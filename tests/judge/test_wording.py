"""Question wording: built in, replaceable, strict."""

from pathlib import Path

import pytest

from proxy.errors import ConfigError
from proxy.judge.questions import Choice, Noul
from proxy.judge.wording import built_in_folder, load_wordings

NAMES = {
    "memory_forget",
    "memory_key",
    "memory_request",
    "memory_update",
    "needs_tool",
    "tool",
    "tool_fits",
    "triage_action",
}


def test_the_built_in_wording_is_complete() -> None:
    """Every question that Usher asks, with both sides of each yes/no described."""
    wordings = load_wordings()
    assert set(wordings) == NAMES
    assert built_in_folder().is_dir()
    for wording in wordings.values():
        if wording.type == "noul":
            assert wording.yes
            assert wording.no


def test_none_of_these_is_always_offered() -> None:
    """Without it a judge always picks some tool."""
    tool = load_wordings()["tool"].choice({"none_of_these": "a tool of that name"}, {"x": 1.0})
    assert isinstance(tool, Choice)
    assert tool.none == "none_of_these_"
    assert tool.none in tool.options
    assert tool.prior == {"x": 1.0}


def test_a_question_may_bring_its_own_options() -> None:
    """Triage has three, and they are all there is."""
    triage = load_wordings()["triage_action"].choice()
    assert list(triage.options) == ["keep", "compress", "drop"]
    assert triage.none is None


def test_places_are_filled_in() -> None:
    """One yes/no per tool names the tool."""
    fits = load_wordings()["tool_fits"].noul(tool="send_mail", description="Sends {tool}")
    assert isinstance(fits, Noul)
    assert "`send_mail`" in str(fits.instructions)


def test_an_operator_replaces_question_by_question(tmp_path: Path) -> None:
    """The others stay as they are."""
    (tmp_path / "mine.yaml").write_text(
        "memory_request:\n  type: noul\n  instructions: Anything durable?\n  'true': yes it is\n"
    )
    wordings = load_wordings(tmp_path)
    assert wordings["memory_request"].noul() == Noul("Anything durable?", "yes it is", None)
    assert wordings["tool"] == load_wordings()["tool"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("memory_reqest: {type: noul, instructions: x}", "did you mean memory_request"),
        ("zzz: {type: noul, instructions: x}", "no question is called zzz"),
        ("tool: {type: noul, instructions: x}", "tool must be a choice"),
        ("tool: {type: choice}", "tool.instructions"),
        ("tool: {type: choice, instructions: x, colour: red}", "tool.colour"),
        ("tool: {type: choice, instructions: 3}", "tool.instructions"),
        ("tool_fits: {type: noul, instructions: 'Is {tol} ok?'}", "nothing fills {tol} in"),
        ("- a", "must be a mapping"),
        ("{", "cannot be read as YAML"),
    ],
)
def test_mistakes_are_errors_at_start(tmp_path: Path, text: str, message: str) -> None:
    """One line with file, question and key."""
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message) as error:
        load_wordings(tmp_path)
    assert str(tmp_path) in error.value.message


def test_an_empty_folder_is_a_mistake(tmp_path: Path) -> None:
    """Whoever names one meant another."""
    with pytest.raises(ConfigError, match="no question wording"):
        load_wordings(tmp_path)
