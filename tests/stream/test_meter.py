"""Usage is read from replies that nobody changes."""

import pytest

from proxy.stream.meter import MAX_JSON, TAIL, Meter

_USAGE = b'{"id":"x","model":"m","choices":[],"usage":{"prompt_tokens":3}}'
_SSE = b"text/event-stream; charset=utf-8"


def test_a_json_reply_states_its_usage() -> None:
    """The body may come in any pieces."""
    meter = Meter(b"application/json")
    meter.feed(_USAGE[:20])
    meter.feed(_USAGE[20:])
    assert meter.read() == ({"prompt_tokens": 3}, "m")


def test_a_stream_states_it_near_its_end() -> None:
    """Null usage of ordinary chunks does not hide the real one, and the tail suffices."""
    meter = Meter(_SSE)
    meter.feed(b'data: {"model":"m","usage":null,"x":"' + b"y" * 2 * TAIL + b'"}\n\n')
    meter.feed(b"data: " + _USAGE + b"\n\ndata: [DONE]\n\n")
    assert meter.read() == ({"prompt_tokens": 3}, "m")


def test_a_responses_stream_nests_it() -> None:
    """The Responses API puts usage and model inside `response`."""
    meter = Meter(_SSE)
    meter.feed(b'event: response.completed\ndata: {"response":{"model":"r","usage":{"a":1}}}\n\n')
    assert meter.read() == ({"a": 1}, "r")


@pytest.mark.parametrize(
    ("content_type", "chunk"),
    [
        (b"audio/mpeg", b"\x00" * 100),
        (b"application/json", b"not json"),
        (b"application/json", b"[1]"),
        (_SSE, b"data: nothing\n\n"),
        (b"application/json", b""),
    ],
)
def test_what_states_no_usage_has_none(content_type: bytes, chunk: bytes) -> None:
    """Unknown is None."""
    meter = Meter(content_type)
    meter.feed(chunk)
    assert meter.read() == (None, None)


def test_an_enormous_body_is_let_go() -> None:
    """Memory does not grow with a download."""
    meter = Meter(b"application/json")
    meter.feed(_USAGE)
    meter.feed(b" " * (MAX_JSON + 1))
    meter.feed(b" ")
    assert meter.read() == (None, None)
