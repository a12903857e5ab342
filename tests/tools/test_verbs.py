"""Requests and names that ask for the same kind of change agree."""

from proxy.tools.text import terms
from proxy.tools.verbs import find_verb


def test_synonyms_are_one_kind() -> None:
    """Modify, change and set are all updates."""
    kinds = {find_verb(terms(word)) for word in ("modify", "change", "set", "updating")}
    assert len(kinds) == 1


def test_kinds_differ() -> None:
    """Creating, deleting, changing and reading are four kinds."""
    assert len({find_verb([verb]) for verb in ("creat", "delet", "updat", "get")}) == 4


def test_no_verb_no_kind() -> None:
    """A noun asks for nothing in particular."""
    assert find_verb(["vault"]) is None
