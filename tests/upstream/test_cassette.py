"""Recorded traffic is found by what a request says, and played once."""

from pathlib import Path

import pytest

from proxy.errors import ConfigError
from proxy.upstream.cassette import Cassette, Interaction, differ, load_cassette
from proxy.wire import JSON

RECORDED = Path(__file__).parents[2] / "cassettes" / "test_chat"


def _one(sent: bytes, answer: bytes = b"1", target: str = "/v1/chat/completions") -> Interaction:
    return Interaction("POST", target, sent, 200, [], answer)


def test_json_is_the_same_in_any_spelling() -> None:
    """Spaces and the order of keys do not count; values do, and each byte of any other body."""
    cassette = Cassette([_one(b'{"a":1,"b":[2]}'), _one(b"\x00raw", b"2")])
    assert cassette.play("POST", "/v1/chat/completions", b'{"a":2}') is None
    assert cassette.play("POST", "/v1/chat/completions", b"\x00raw ") is None
    found = cassette.play("POST", "/v1/chat/completions", b'{ "b": [2], "a": 1 }')
    assert found is not None
    assert found.answer == b"1"


def test_the_same_request_twice_has_two_answers() -> None:
    """In the order of the recording; then none, or the last one again."""
    cassette = Cassette([_one(b"{}", b"1"), _one(b"{}", b"2")])
    played = [cassette.play("POST", "/v1/chat/completions", b"{}") for _ in range(3)]
    assert [one and one.answer for one in played] == [b"1", b"2", None]
    cassette.repeat = True
    again = cassette.play("POST", "/v1/chat/completions", b"{}")
    assert again is not None
    assert again.answer == b"2"


def test_why_there_is_no_answer() -> None:
    """The place of the difference, never a value."""
    cassette = Cassette([_one(b'{"messages":[{"content":"hi"}]}')])
    place = ("POST", "/v1/chat/completions")
    told = cassette.explain(*place, b'{"messages":[{"content":"secret"}]}')
    assert told == "the recorded request differs at messages[0].content"
    assert "no such method and path" in cassette.explain("GET", "/v1/models", b"")
    assert cassette.play(*place, b'{"messages":[{"content":"hi"}]}') is not None
    assert "played already" in cassette.explain(*place, b'{"messages":[{"content":"hi"}]}')


@pytest.mark.parametrize(
    ("one", "other", "place"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "a.b"),
        ({"a": [1, 2]}, {"a": [1]}, "a[1]"),
        ({"a": 1}, {"a": 1, "c": 1}, "c"),
        ([{"x": None}], [{"x": None}], ""),
    ],
)
def test_where_values_differ(one: JSON, other: JSON, place: str) -> None:
    """As a path into the value."""
    assert differ(one, other) == place


def test_our_own_recordings() -> None:
    """A file has an order, a folder has them all; the base URL ends before the resource."""
    cassette = load_cassette(RECORDED / "test_other_routes.yaml")
    assert [one.target for one in cassette.interactions] == ["/v1/models", "/v1/embeddings"]
    assert cassette.base == "/v1"
    assert len(load_cassette(RECORDED).interactions) > 8
    assert Cassette([_one(b"", target="/api/v1/models?x=1")]).base == "/api/v1"
    assert Cassette([_one(b"", target="/models")]).base == ""


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[]", "not a cassette"),
        ("interactions: [{request: 1}]", "not a cassette"),
        ("a: [", "not a cassette"),
        ("interactions: []", "no recorded traffic"),
    ],
)
def test_what_is_no_cassette(tmp_path: Path, text: str, error: str) -> None:
    """Is said with the file's name."""
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=error):
        load_cassette(file)
    with pytest.raises(ConfigError, match="no such file"):
        load_cassette(tmp_path / "none.yaml")


def test_forms_of_bodies(tmp_path: Path) -> None:
    """Text, bytes, JSON as some recorders write it, and none; headers of the hop are dropped."""
    file = tmp_path / "c.yaml"
    file.write_text(
        "interactions:\n"
        "- request: {method: POST, uri: 'http://h/v1/x?a=b', parsed_body: {n: 1}}\n"
        "  response:\n"
        "    status: {code: 201}\n"
        "    headers: {Content-Type: [text/plain], Content-Length: ['9'], X-One: two}\n"
        "    body: {string: !!binary AAE=}\n"
        "- request: {method: GET, uri: 'http://h/v1/y'}\n"
        "  response: {status: {code: 204}}\n"
    )
    one, other = load_cassette(file).interactions
    assert (one.target, one.sent, one.status) == ("/v1/x?a=b", b'{"n":1}', 201)
    assert one.headers == [(b"content-type", b"text/plain"), (b"x-one", b"two")]
    assert (one.answer, other.answer, other.sent) == (b"\x00\x01", b"", b"")
