"""The foreign words of the stand-in model."""

from proxy.upstream.standin.glossary import UNSPACED, WORDS
from proxy.upstream.standin.words import VERBS


def test_every_foreign_word_has_an_english_one() -> None:
    """No entry is lost to a typing error in the table."""
    assert all(english and english.isascii() for english in (*UNSPACED.values(), *WORDS.values()))


def test_spaced_words_are_lower_case() -> None:
    """They are looked up in lower case."""
    assert [word for word in WORDS if word != word.lower()] == []


def test_each_language_can_ask_to_see_to_make_and_to_remove() -> None:
    """The three things that most requests are about."""
    for foreign in ("見せ", "查看", "zeige", "affiche", "muestra"):
        assert VERBS[{**UNSPACED, **WORDS}[foreign]] == "get"
    assert {UNSPACED["削除"], WORDS["lösche"], WORDS["supprime"], WORDS["borra"]} == {"delete"}
