"""Odd events of a provider pass, are mended or are dropped, and never crash."""

import json

import pytest

from proxy.wire import JSON, JSONObject
from tests.stream.transcript import (
    CALLED,
    SEARCH,
    SECOND,
    STOP,
    TOP,
    chunk,
    event,
    opening,
    play,
    run,
    say,
    see,
    splicer_in_round,
)


@pytest.mark.parametrize(
    "data",
    [
        b": keepalive",
        b"[1,2]",
        b'{"seed":36893488147419103232}',
        b'{"choices":null}',
        b'{"choices":[1]}',
        b'{"choices":[{"index":0,"delta":null}]}',
        b'{"choices":[{"index":0,"delta":{"odd":null},"finish_reason":null}]}',
    ],
)
def test_what_cannot_be_read_passes_as_it_is(data: bytes) -> None:
    """Usher changes only what it understands; such an event alone starts no stream."""
    wire = b"data: " + data + b"\n\n"
    assert play(splicer_in_round(), say("a") + wire) == say("a") + wire
    assert play(splicer_in_round(), wire) == b""


def test_a_chunk_without_choices_gets_the_constant_head_only() -> None:
    """Nothing else is added to it."""
    seen = run(say("a") + event({"id": "other", "note": 1}) + STOP)
    assert seen.chunks[1] == {"id": "chatcmpl-1", "note": 1}


def test_what_cannot_be_read_does_not_leak_a_call() -> None:
    """A broken event that may hold a hidden call is dropped."""
    broken = b'data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"tool_search"\n\n'
    assert play(splicer_in_round(), say("a") + broken) == say("a")


def test_large_numbers_survive_a_rewrite() -> None:
    """An integer of 65 bits is not rounded when its chunk gets another head."""
    odd = chunk({"content": "a"}, None, SECOND, seed=36893488147419103232)
    seen = run(SEARCH + CALLED, odd + odd + STOP)
    assert [chunk["seed"] for chunk in seen.chunks[:2]] == [36893488147419103232] * 2


def test_other_choices_pass() -> None:
    """They never get here, but must not crash or lose anything either."""
    other = {"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"}
    first = {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}
    splicer = splicer_in_round()
    seen = see(play(splicer, event(TOP | {"choices": [other, first]})) + splicer.finish(None))
    assert sorted(seen.text) == ["a", "b"]
    assert seen.finishes == ["stop", "stop"]
    splicer = splicer_in_round()
    both = event(TOP | {"choices": [other, first | {"delta": {}}]})
    assert see(play(splicer, both) + splicer.finish(None)).text == "b"


@pytest.mark.parametrize("spaces", [(",", ":"), (", ", ": ")])
def test_chunks_are_written_with_or_without_spaces(spaces: tuple[str, str]) -> None:
    """Usage keys, roles and heads are found in either spelling."""

    def write(top: JSONObject, delta: JSONObject) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        value = top | {"choices": [choice], "usage": None, "end": 1}
        return b"data: " + json.dumps(value, separators=spaces).encode() + b"\n\n"

    words = [write(SECOND, {"role": "assistant", "content": text}) for text in "abc"]
    seen = run(SEARCH + CALLED, *[b"".join(words) + STOP])
    assert (seen.text, seen.roles) == ("abc", ["assistant"])
    assert seen.heads("id") == {"chatcmpl-1"}
    assert not any("usage" in chunk for chunk in seen.chunks)


def test_pretty_printed_chunks_are_rewritten_into_one_line() -> None:
    """A data field of many lines stays one event when its head changes."""

    def pretty(top: JSONObject) -> bytes:
        choice: JSON = {"index": 0, "delta": {"content": "a"}, "finish_reason": None}
        lines = json.dumps(top | {"choices": [choice]}, indent=1).split("\n")
        return "".join(f"data: {line}\n" for line in lines).encode() + b"\n"

    splicer = splicer_in_round()
    assert play(splicer, pretty(TOP)) == pretty(TOP)
    seen = run(SEARCH + CALLED, pretty(SECOND) * 3 + STOP)
    assert (seen.text, seen.heads("id")) == ("aaa", {"chatcmpl-1"})


def test_the_final_message_of_a_deviating_stream_is_not_shown() -> None:
    """Some servers repeat the whole message at the end, hidden calls included."""
    message = {"role": "assistant", "tool_calls": [opening(0, "s", "tool_search", "{}")]}
    choice = {"index": 0, "delta": {"content": "a"}, "message": message, "finish_reason": None}
    seen = run(event(TOP | {"choices": [choice]}) + SEARCH + CALLED, say("b") + STOP)
    assert seen.text == "a\n\nb"
    last = choice | {"delta": {}, "finish_reason": "stop"}
    splicer = splicer_in_round()
    out = play(splicer, say("a") + event(TOP | {"choices": [last]})) + splicer.finish(None)
    assert (see(out).finishes, b"tool_search" in out) == (["stop"], False)
