"""What the agent is told."""

from proxy.memory.change import Person, Snapshot
from proxy.memory.evidence import Heard
from proxy.memory.instructions import INSTRUCTIONS, Hint, Limits, make_tools, write_messages

EMPTY = Snapshot(Person(), [])


def test_own_instructions_replace_ours() -> None:
    """The operator's text, the same data."""
    limits = Limits({"pets": "animals"}, 100)
    heard = Heard("hi", "offer", ("before",))
    system, user = write_messages(heard, EMPTY, Hint(), limits, "Mine.")
    assert system["content"] == "Mine."
    assert 'Allowed keys: {"pets":"animals"}' in user["content"]
    assert 'Before it: [{"user":"before"},{"assistant":"offer"}]' in user["content"]
    assert write_messages(heard, EMPTY, Hint(), limits, None)[0]["content"] == INSTRUCTIONS


def test_hints_can_be_ignored() -> None:
    """A key, a change or a deletion; always with leave to ignore it."""
    _, user = write_messages(Heard("x"), EMPTY, Hint(forget=True), Limits({}, 1), None)
    assert "forget something. Ignore this if" in user["content"]


def test_two_tools() -> None:
    """One to set, one to delete; nothing else can be done."""
    names = [tool["function"]["name"] for tool in make_tools(Limits({}, 1))]
    assert names == ["set_memory", "delete_memory"]
