"""What the gate's model reads of a conversation."""

import pytest

from proxy.memory.gate.pair import Pair, clip, ease_of, read_pair, split_clauses


def test_the_answer_before() -> None:
    """The assistant's last text counts, past tool results; a user's message before does not."""
    offer = {"role": "assistant", "content": "Save it?"}
    tool = {"role": "tool", "content": "[tool result]"}
    user = {"role": "user", "content": "hm"}
    assert read_pair({"latest": "yes", "conversation": [offer, tool]}).before == "Save it?"
    assert read_pair({"latest": "yes", "conversation": [offer, user]}).before == ""


@pytest.mark.parametrize("state", ["text", [], {}, {"latest": 3, "conversation": "x"}])
def test_odd_states(state: object) -> None:
    """Whatever comes, there is a pair."""
    assert read_pair(state).latest == ""


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ('Translate "call me Max" please', "Translate  please"),
        ("Was heißt „nenn mich Max“?", "Was heißt ?"),
        ("> quoted\nok", "ok"),
        ("a\n```\nremember\n```\nb", "a\n\nb"),
        ("it's a dog's life", "it's a dog's life"),
    ],
)
def test_quotations(text: str, own: str) -> None:
    """What is quoted is not the user's own."""
    assert read_pair({"latest": text}).own == own


def test_parts() -> None:
    """Clauses, and the ends of a long text."""
    assert split_clauses("a, b. 今日、c") == ["a,", "b.", "今日、", "c"]
    assert clip("x" * 50 + "y" * 50, 10) == "xxxxxx … yyyy"
    assert not Pair("", ()).quotes


def test_scripts_with_little_to_learn_from_pass_sooner() -> None:
    """In doubt the agent runs, and there is more doubt about Arabic letters and kana."""
    assert ease_of("تذكر أنني أدرس الطب") == ease_of("覚えておいて") > 0
    assert ease_of("Remember that I study medicine") == ease_of("记住我是左撇子") == 0
