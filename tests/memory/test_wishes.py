"""Two wishes that need more care than others."""

import pytest

from proxy.memory.evidence import Heard
from proxy.memory.wishes import declines, means_everything


@pytest.mark.item("memory/declined")
@pytest.mark.parametrize(
    "text",
    [
        "I earn 90k. Don't remember this.",
        "please don’t save that",
        "Do not store this anywhere, I'm just venting.",
        "Merk dir das bitte nicht, es ist nur heute so.",
        "ne retiens pas ça",
        "No guardes eso.",
        "これは覚えないでください。",
        "别记住这个",
        "Не запоминай это.",
    ],
)
def test_what_is_not_to_be_remembered(text: str) -> None:
    """Said in a clause of its own, about what was said."""
    assert declines(text)


@pytest.mark.parametrize(
    "text",
    [
        "Don't forget that I live in Rome.",
        "I don't remember this song's name, do you?",
        "Don't save this, but remember that I live in Rome.",
        "Don't remember my address any more, delete it.",
        'Translate "don\'t remember this" for me.',
        "Translate:\n> don't remember this",
        "The function must not store that value in the cache.",
        "Remember this.",
    ],
)
def test_everything_else_is_judged(text: str) -> None:
    """A request, a question, a quotation, and a message that asks for something as well."""
    assert not declines(text)


def test_everything() -> None:
    """By its words, or by those that a short answer is about."""
    assert means_everything(Heard("Forget everything about me"))
    assert means_everything(Heard("Vergiss alles, was du weißt."))
    assert means_everything(Heard("请忘记所有关于我的事"))
    assert means_everything(Heard("yes", "Shall I?", ("Delete all my memories.",)))
    assert not means_everything(Heard("Forget where I live"))
    assert not means_everything(Heard("x" * 200, "", ("Delete all my memories.",)))
