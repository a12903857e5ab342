"""The names for foreign JSON add nothing of their own."""

from typing import Any

from proxy import wire


def test_names_are_plain_aliases() -> None:
    """JSON is whatever a parser returns; headers are raw pairs."""
    headers: wire.Headers = [(b"x-a", b"1")]
    body: wire.JSONObject = {"a": None}
    assert wire.JSON is Any
    assert (headers, body) == ([(b"x-a", b"1")], {"a": None})


def test_half_an_emoji_can_be_written() -> None:
    """Some models stream one; it is escaped, as JSON may have it; the rest is compact."""
    assert wire.dump({"a": ["é", 1]}) == '{"a":["é",1]}'.encode()
    assert wire.dump(["a\ud83d"]) == b'["a\\ud83d"]'
