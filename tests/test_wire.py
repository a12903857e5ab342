"""The names for foreign JSON add nothing of their own."""

from typing import Any

from proxy import wire


def test_names_are_plain_aliases() -> None:
    """JSON is whatever a parser returns; headers are raw pairs."""
    headers: wire.Headers = [(b"x-a", b"1")]
    body: wire.JSONObject = {"a": None}
    assert wire.JSON is Any
    assert (headers, body) == ([(b"x-a", b"1")], {"a": None})
