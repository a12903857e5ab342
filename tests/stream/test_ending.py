"""The end of a round waits, and goes out as it came if it still tells the truth."""

import pytest

from proxy.stream.ending import Ending
from tests.stream.transcript import TOP, event, see

CHOICE = {"index": 0, "delta": {}, "finish_reason": "tool_calls", "logprobs": None}
CHUNK = TOP | {"choices": [CHOICE]}


def test_a_finish_goes_out_as_it_came() -> None:
    """Only the first one of a round."""
    ending = Ending()
    ending.keep_finish(CHUNK, CHOICE, b"first")
    ending.keep_finish(CHUNK, CHOICE, b"second")
    assert ending.render_finish(calls=True, extra=None) == b"first"


@pytest.mark.parametrize(
    ("said", "calls", "seen"),
    [
        ("tool_calls", True, "tool_calls"),
        ("tool_calls", False, "stop"),
        ("stop", True, "tool_calls"),
        ("stop", None, "stop"),
        ("tool_calls", None, "tool_calls"),
        ("function_call", True, "tool_calls"),
        ("function_call", False, "stop"),
        ("length", False, "length"),
        ("odd", True, "odd"),
    ],
)
def test_the_reason_fits_what_the_client_saw(said: str, calls: bool | None, seen: str) -> None:
    """Hidden calls are no reason, released ones are; reasons of other kinds are the upstream's."""
    ending = Ending()
    choice = CHOICE | {"finish_reason": said}
    ending.keep_finish(CHUNK, choice, event(TOP | {"choices": [choice]}))
    assert see(ending.render_finish(calls, None)).finishes == [seen]


def test_more_fields_go_on_the_finish_chunk() -> None:
    """They stand at its top; words that came with it have gone out already."""
    ending = Ending()
    choice = CHOICE | {"delta": {"content": "x"}, "message": {"content": "x"}, "logprobs": {}}
    ending.keep_finish(CHUNK, choice, b"raw")
    (chunk,) = see(ending.render_finish(calls=True, extra={"usher": {"rounds": 2}})).chunks
    assert chunk == CHUNK | {"usher": {"rounds": 2}}


def test_no_finish_is_invented() -> None:
    """A round that never said why it ended has no finish event."""
    assert Ending().render_finish(calls=False, extra={"usher": 1}) == b""


def test_the_usage_event_is_the_upstreams_if_it_says_the_same() -> None:
    """Else one with the sum is made, with an empty list of choices."""
    ending = Ending()
    ending.keep_usage({"a": 1}, b"raw")
    assert ending.render_usage({"a": 1}, TOP) == b"raw"
    (chunk,) = see(ending.render_usage({"a": 2}, TOP)).chunks
    assert chunk == TOP | {"choices": [], "usage": {"a": 2}}
