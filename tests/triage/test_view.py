"""What a judge, a writer and an index get to read."""

import pytest

from proxy.triage.view import (
    find_constraints,
    find_quotes,
    is_pinned,
    is_quoted,
    make_label,
    read_unit,
    show_unit,
)
from proxy.wire import JSONObject
from tests.triage.talk import converse, said, step, user

FILLER = "Nothing of interest stands here. " * 60


def _read(messages: list[JSONObject]) -> list[JSONObject]:
    talk = converse([*messages, user("Next")])
    return read_unit(talk, talk.units[0])


def test_a_constraint_in_the_middle_is_seen() -> None:
    """The seed's clip at 800 characters would have hidden it."""
    shown = show_unit(_read([user(f"{FILLER}\nNever deploy on Fridays.\n{FILLER}")]), 800)
    assert "Never deploy on Fridays." in shown
    assert len(shown) <= 800
    assert shown.startswith("user: Nothing")


def test_figures_come_after_constraints() -> None:
    """Within what there is room for."""
    text = f"{FILLER}\nThe limit is 40 ms.\nIt took 12 MB.\nplain words\n{FILLER}"
    shown = show_unit(_read([user(text)]), 800)
    assert shown.index("limit is 40 ms") < shown.index("12 MB")
    assert "plain words" not in shown


def test_a_step_shows_call_and_size() -> None:
    """Tool names, arguments, and how long the result is."""
    talk = converse([user("Do"), *step(1, "found"), user("Next")])
    shown = show_unit(read_unit(talk, talk.units[1]), 800)
    assert 'calls look {"at":1,"place":0}' in shown
    assert "result (10 characters): found c1_0" in shown


@pytest.mark.parametrize("text", [
    "You must not touch prod.", "Nur Anna darf das.", "必须使用中文", "Use at most 3 retries.",
])  # fmt: skip
def test_constraints_in_several_languages(text: str) -> None:
    """Only the sentence itself, not what stands around it."""
    assert find_constraints(_read([user(f"Hello there. {text} Bye then.")])) == [text] or (
        text in find_constraints(_read([user(f"Hello there.\n{text}\nBye then.")]))
    )


def test_an_assistants_words_bind_nobody() -> None:
    """Constraints are the user's."""
    assert not find_constraints(_read([user("Hi"), said("You must know that never works.")]))


@pytest.mark.parametrize(("text", "pinned"), [
    ("This is important: port 8443", True), ("Keep this exactly as it is", True),
    ("remember that I like tea", True), ("Hi there", False),
])  # fmt: skip
def test_pins(text: str, pinned: bool) -> None:
    """What the user said must not be lost."""
    assert is_pinned(_read([user(text)])) is pinned


def test_quotes_pin_what_they_quote() -> None:
    """A marked quotation, a quoted line, a whole sentence."""
    unit = _read([user("The pump fails when it rains hard"), said("I see.")])
    for newest in ('You said "fails when it rains", why?', "> The pump fails when it rains hard"):
        assert is_quoted(unit, find_quotes(newest))
    assert not is_quoted(unit, find_quotes("What about the pump?"))


def test_labels_say_what_it_was() -> None:
    """Calls by name and values; words cut short; a reply stands behind its question."""
    talk = converse([user("Do\nthe  thing"), *step(1), said("Done."), user("Next")])
    labels = [make_label(unit, read_unit(talk, unit)) for unit in talk.units]
    assert labels == ["Do the thing", "look(1)", "the reply", "Next"]
    long = converse([user("word " * 50), user("x"), said("y"), user("z")])
    assert len(make_label(long.units[0], read_unit(long, long.units[0]))) == 56
