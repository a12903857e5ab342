"""Exact words of other languages meet the English words of tool descriptions."""

import pytest

from proxy.tools.glossary import is_foreign, translate_unspaced, translate_word


@pytest.mark.parametrize(
    ("word", "english"),
    [
        ("Speicherkonten", "storage account"),
        ("löschen", "delete"),
        ("archivos", "file"),
        ("Télécharger", "download"),
        ("xylophon", ""),
        ("an", ""),
    ],
)
def test_words_are_found_in_any_form(word: str, english: str) -> None:
    """Endings, capitals and accents do not matter; unknown words stay unknown."""
    assert translate_word(word) == english


def test_unspaced_terms_are_replaced() -> None:
    """The longest known term wins, the rest of the sentence stays."""
    assert translate_unspaced("仮想マシンの一覧") == " virtual machine vm の list "


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("Wie ist das Wetter in Hamburg?", True),
        ("Muéstrame los archivos de la carpeta", True),
        ("show me the files of the folder", False),
        ("weather", False),
    ],
)
def test_small_words_tell_the_language(text: str, foreign: bool) -> None:
    """Articles and prepositions say whether a message is English."""
    assert is_foreign(text) == foreign
