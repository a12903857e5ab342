"""How a message or a definition becomes the terms that ranking compares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.tools.text import MAX_CHARS, cut, name_terms, sentences, spaced, squash, terms, words


@pytest.mark.parametrize(
    "forms",
    [
        "create creates created creating creation",
        "query queries queried querying",
        "recommend recommendation recommendations",
        "plan plans planned planning",
        "deploy deployed deployment deployments",
        "analyze analysis analyses analyzing",
        "apply applies applied applying",
        "calculate calculation calculator",
    ],
)
def test_forms_of_a_word_meet(forms: str) -> None:
    """A request in another grammatical form still finds the tool."""
    assert len(set(terms(forms))) == 1


def test_names_are_split_at_every_convention() -> None:
    """Camel case, underscores, dashes and dots all separate words."""
    parts = ["get", "user", "nam"]
    for name in ("getUserName", "get_user-name", "get.userName"):
        assert name_terms(name) == parts


def test_compounds_keep_whole_and_parts() -> None:
    """`MySQL` is found by its own name and, less surely, as SQL."""
    assert words("MySQL") == [("mysql", ("sql",))]
    assert terms("MySQL server") == ["mysql", "sql", "server"]


def test_plural_acronyms_are_one_word() -> None:
    """`VMs` is the plural of VM, not a V and an Ms."""
    assert terms("VMs") == ["vm"]


def test_names_can_be_read_as_prose() -> None:
    """A sentence model gets words, not identifiers."""
    assert spaced("keyVault_secret-get") == "key Vault secret get"


def test_stop_words_leave_get() -> None:
    """Filler goes; the verb that tells `get` from `list` stays."""
    assert terms("could you please get the logs") == ["get", "log"]


@pytest.mark.item("catalog/foreign-description", "reported/unspaced-clause")
def test_unspaced_scripts_become_bigrams() -> None:
    """Japanese, Chinese and Korean text has no spaces to split at."""
    assert terms("東京の天気") == ["東京", "京の", "の天", "天気"]
    assert terms("東京weather") == ["東京", "weather"]


def test_other_scripts_stay_words() -> None:
    """Words of alphabets other than Latin are kept, in lower case."""
    assert terms("Größe Погода") == ["gröss", "погода"]


@pytest.mark.item("prediction/long-message")
def test_long_messages_are_read_at_both_ends() -> None:
    """A pasted log between question and request cannot stall the ranking."""
    text = "begin " + "x" * 200_000 + " end"
    assert {"begin", "end"} <= set(terms(text))
    assert sum(map(len, terms(text))) <= MAX_CHARS


def test_sentences_only_when_there_are_several() -> None:
    """One sentence is already the whole message."""
    assert sentences("List the vaults.", 3) == []
    assert sentences("List the vaults. Then delete it! 次に進む。", 2) == [
        "List the vaults.",
        "Then delete it!",
    ]


@given(st.lists(st.sampled_from([*"aB7.!?;\n 。；", "\u3000", "don't", "東京", "é"])))
def test_cutting_keeps_every_word(pieces: list[str]) -> None:
    """The words of a message are those of its sentences."""
    text = "".join(pieces)
    assert [word for part in cut(text) for word in words(part)] == words(text)


def test_squashed_names_ignore_how_they_are_written() -> None:
    """`Key Vault`, `key_vault` and `keyVault` are the same identifier."""
    assert squash("Key Vault") == squash("key_vault") == squash("keyVault") == "keyvault"


@given(st.text())
def test_any_text_is_accepted(text: str) -> None:
    """No text of any script makes splitting fail or yield an empty term."""
    assert all(terms(text))
