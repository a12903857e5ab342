"""A stream keeps one id, created, model, fingerprint and tier."""

import json

import pytest

from proxy.stream.chunk import decode_text
from proxy.stream.head import Head
from proxy.wire import JSON, JSONObject
from tests.stream.transcript import SECOND, TOP

TEXT: JSONObject = {"choices": [{"index": 0, "delta": {"content": "x"}}]}


def stamp(head: Head, chunk: JSONObject) -> JSONObject:
    copy = dict(chunk)
    head.stamp(copy, json.dumps(chunk).encode())
    return copy


def rewrite(head: Head, chunk: JSONObject) -> JSON:
    """The rewritten chunk, None when it must be parsed."""
    data = json.dumps(chunk).encode()
    out = head.rewrite(decode_text(data), data)
    return out if out is None else json.loads(out)


def test_the_first_values_win() -> None:
    """A later id is replaced; what a chunk lacks is not added."""
    head = Head()
    assert stamp(head, TOP | TEXT) == TOP | TEXT
    assert stamp(head, SECOND | TEXT) == TOP | TEXT
    assert stamp(head, {"model": "other"} | TEXT) == {"model": "m"} | TEXT


def test_empty_values_come_before_the_first() -> None:
    """Azure opens with an empty id and model, which are no first values."""
    head = Head()
    azure = {"id": "", "created": 0, "model": "", "choices": []}
    assert stamp(head, azure) == azure
    assert stamp(head, TOP | TEXT) == TOP | TEXT
    assert stamp(head, azure)["id"] == TOP["id"]


def test_chunks_that_begin_alike_are_rewritten_without_parsing() -> None:
    """After one stamped chunk of a round, the next ones get the new beginning."""
    head = Head()
    stamp(head, TOP | {"system_fingerprint": "f"} | TEXT)
    second = SECOND | {"system_fingerprint": "g"} | TEXT
    assert rewrite(head, second) is None
    stamp(head, second)
    assert rewrite(head, second) == TOP | {"system_fingerprint": "f"} | TEXT


def test_a_chunk_with_the_right_head_keeps_its_bytes() -> None:
    """The very same object comes back, which is how others know that nothing changed."""
    head = Head()
    stamp(head, TOP | TEXT)
    data = json.dumps(TOP | TEXT).encode()
    assert head.rewrite(decode_text(data), data) is data


def test_the_same_head_in_another_spelling_is_parsed() -> None:
    """Only a beginning with the very same bytes can be replaced."""
    head = Head()
    stamp(head, TOP | TEXT)
    stamp(head, SECOND | TEXT)
    data = json.dumps(SECOND | TEXT, separators=(",", ":")).encode()
    assert head.rewrite(decode_text(data), data) is None


def test_a_right_head_after_a_wrong_one_keeps_its_bytes() -> None:
    """What was learned for another head is forgotten."""
    head = Head()
    for chunk in (TOP | TEXT, SECOND | TEXT, TOP | TEXT):
        stamp(head, chunk)
    data = json.dumps(TOP | TEXT).encode()
    assert head.rewrite(decode_text(data), data) is data


@pytest.mark.parametrize(
    "second",
    [
        TEXT | SECOND,
        {"model": "choices", "id": "z"} | TEXT,
        {"id": 'a"choices"', "model": "n"} | TEXT,
        {"created": 5} | TEXT | {"model": "n"},
    ],
)
def test_a_head_elsewhere_is_left_to_the_parser(second: JSONObject) -> None:
    """Fields behind the choices, or a beginning that bytes alone cannot find, are stamped."""
    head = Head()
    stamp(head, TOP | TEXT)
    stamped = stamp(head, second)
    assert rewrite(head, second) in (None, stamped)
    assert all(stamped[name] == TOP[name] for name in second if name in TOP)


def test_a_changed_head_within_a_round_is_noticed() -> None:
    """A provider with an id per chunk still ends up with one."""
    head = Head()
    for number in range(3):
        chunk = TOP | {"id": f"{number}"} | TEXT
        assert rewrite(head, chunk) is None
        assert stamp(head, chunk)["id"] == "0"


def test_chunks_of_our_own_begin_like_the_others() -> None:
    """All that is known, and the required fields in any case."""
    head = Head()
    assert head.chunk() == {
        "id": None,
        "object": "chat.completion.chunk",
        "created": None,
        "model": None,
    }
    stamp(head, TOP | {"service_tier": "flex"} | TEXT)
    assert head.chunk() == TOP | {"service_tier": "flex"}
