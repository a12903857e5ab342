"""The right tool comes first, the same way every time."""

import pytest

from proxy.tools.rank import Document, LexicalIndex, build_lexical


def _index(*tools: tuple[str, str]) -> LexicalIndex:
    return build_lexical([Document(name, "", text, None) for name, text in tools])


def _names(index: LexicalIndex, query: str, limit: int = 5) -> list[str]:
    return [index.documents[hit.position].name for hit in index.rank(query, limit)]


VAULT = _index(
    ("secret_get", "Read a secret of a key vault."),
    ("secret_set", "Store a secret in a key vault."),
    ("weather_now", "Current weather of a city."),
)


def test_the_described_tool_comes_first() -> None:
    """Words of the request meet words of the description, in any form."""
    assert _names(VAULT, "what is the weather in Rome's cities?")[0] == "weather_now"


def test_a_spelled_out_name_wins() -> None:
    """Whoever writes the tool's name means that tool, however it is written."""
    assert _names(VAULT, "secretSet")[0] == "secret_set"
    assert _names(VAULT, "Secret Get")[0] == "secret_get"


def test_tools_without_a_match_are_left_out() -> None:
    """A ranking never pads itself with tools that share nothing with the query."""
    assert _names(VAULT, "translate a poem") == []


@pytest.mark.parametrize("query", ["", "   ", "🎉🎉", "the of and", "x" * 200_000])
def test_queries_without_content_find_nothing(query: str) -> None:
    """Empty, emoji-only and meaningless queries give an empty ranking."""
    assert VAULT.rank(query, 5) == []
    assert VAULT.score(query).coverage == 0.0


def test_empty_and_single_catalogues() -> None:
    """A catalogue of no tool or one tool ranks like any other."""
    assert _index().rank("anything", 5) == []
    assert _names(_index(("ping", "Ping a host.")), "ping the host") == ["ping"]


def test_ties_keep_the_catalogue_order() -> None:
    """Equal scores are broken by position, so that prompts stay stable."""
    index = _index(("b_tool", "Convert units."), ("a_tool", "Convert units."))
    assert _names(index, "convert units") == ["b_tool", "a_tool"]


def test_identical_tools_appear_once() -> None:
    """The same tool offered by two servers takes one place of the shortlist."""
    index = _index(("search", "Search."), ("search", "Search."), ("search_web", "Search the web."))
    assert _names(index, "search", 2) == ["search", "search_web"]


def test_each_sentence_of_a_long_message_counts() -> None:
    """A second request in the same message is not drowned by the first."""
    query = "Read the secret of the key vault. Also tell me the weather."
    assert "weather_now" in _names(VAULT, query, 2)


def test_coverage_is_the_share_of_known_words() -> None:
    """A query in words the catalogue lacks is covered less."""
    assert VAULT.score("key vault secret").coverage == 1.0
    assert 0.0 < VAULT.score("vault gobbledygook").coverage < 1.0


def test_no_limit_no_hits() -> None:
    """A limit of zero is an empty ranking."""
    assert VAULT.rank("weather", 0) == []
