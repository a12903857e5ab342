"""How a spliced stream ends: usage, held text, errors, and when it has begun at all."""

import json

import pytest

from proxy.wire import JSONObject
from tests.stream.transcript import (
    CALLED,
    END,
    ROLE,
    SEARCH,
    SECOND,
    STOP,
    TOP,
    USAGE,
    VISIBLE,
    calls,
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
    "wire",
    [
        say("a") + STOP + event(TOP | {"choices": [], "usage": USAGE}),
        say("a") + chunk({}, "stop", usage=USAGE),
        say("a") + STOP + event(TOP | {"choices": [{"index": 0, "delta": {}}], "usage": USAGE}),
        say("a") + STOP + event(TOP | {"usage": USAGE}),
        chunk({"content": "a"}, usage={"total_tokens": 1}) + STOP + event({"usage": USAGE}),
        chunk({"content": "a"}, usage=None) + chunk({}, "stop", usage=USAGE),
    ],
)
@pytest.mark.parametrize("asked", [True, False])
def test_usage_reaches_only_who_asked(wire: bytes, asked: bool) -> None:
    """One chunk before the end with no choices; else not even the key."""
    splicer = splicer_in_round(asked=asked)
    out = play(splicer, wire + END)
    assert splicer.answer().usage == USAGE
    seen = see(out + splicer.finish(USAGE))
    assert [choice["delta"] for chunk in seen.chunks for choice in chunk["choices"]] == [
        {"content": "a"},
        {},
    ]
    assert seen.usages == ([USAGE] if asked else [])
    if asked:
        assert seen.chunks[-1]["choices"] == []
    else:
        assert not any("usage" in chunk for chunk in seen.chunks)


def test_held_text_appears_with_the_visible_end() -> None:
    """A JSON reply must not begin with the narration of a hidden round."""
    seen = run(say("Let me look.") + SEARCH + CALLED, say('{"a"') + say(":1}") + STOP, hold=True)
    assert seen.text == '{"a":1}'
    splicer = splicer_in_round(hold=True)
    assert play(splicer, say("a")) == b""
    assert splicer.answer().message["content"] == "a"


def test_held_text_precedes_a_visible_call() -> None:
    """A live call shows that its round is visible, so does a released one."""
    splicer = splicer_in_round(hold=True)
    assert play(splicer, ROLE + say("a")) == b""
    out = play(splicer, calls(opening(0, "a", "t0")))
    assert out == ROLE + say("a") + calls(opening(0, "a", "t0"))
    assert play(splicer, say("b")) == say("b")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (event({"error": {"message": "x", "code": 502}}), {"message": "x", "code": 502}),
        (event({"error": "overloaded"}), {"message": "overloaded"}),
        (b'event: error\ndata: {"message":"x"}\n\n', {"message": "x"}),
        (b"event: error\ndata: broken\n\n", {"message": "an error event"}),
        (event({"object": "error", "a": 1}), {"object": "error", "a": 1}),
    ],
)
def test_an_upstream_error_passes_verbatim_and_is_the_end(error: bytes, said: JSONObject) -> None:
    """Nothing follows it but `[DONE]`, and nobody invents a finish reason."""
    splicer = splicer_in_round()
    out = play(splicer, say("a") + error + say("b") + STOP + END)
    out += splicer.finish(USAGE) + splicer.fail({"message": "y"}) + splicer.release([])
    assert out == say("a") + error + END
    assert splicer.answer().error == said
    assert splicer.finished


def test_an_error_shows_held_text_unless_its_round_looks_hidden() -> None:
    """What the client would have read without Usher is not lost."""
    error = event({"error": {"message": "x"}})
    assert play(splicer_in_round(hold=True), say("a") + error) == say("a") + error + END
    splicer = splicer_in_round(hold=True)
    assert play(splicer, SEARCH + CALLED) == b""
    splicer.start_round(VISIBLE)
    assert play(splicer, say("a") + error) == say("a") + error + END
    assert play(splicer_in_round(hold=True), say("a") + SEARCH + error) == error + END


def test_a_failure_of_our_own_is_an_error_in_the_stream() -> None:
    """With or without its envelope, and once."""
    for body in ({"message": "x"}, {"error": {"message": "x"}}):
        splicer = splicer_in_round()
        seen = see(play(splicer, ROLE + say("a")) + splicer.fail(body) + splicer.fail(body))
        assert (seen.errors, seen.finishes, seen.dones) == ([{"message": "x"}], [], 1)


def test_nothing_went_out_before_it_started() -> None:
    """A role or a hidden round leaves the status open; so a failure can still be a plain reply."""
    splicer = splicer_in_round()
    silence = play(splicer, ROLE + SEARCH + CALLED + END)
    assert (silence, splicer.started) == (b"", False)
    splicer.start_round(VISIBLE)
    out = play(splicer, ROLE + say("a", SECOND))
    assert (see(out).roles, splicer.started) == (["assistant"], True)


def test_finished_says_that_only_usage_may_come() -> None:
    """So that nobody waits for an upstream that never closes."""
    for end in (STOP, END):
        splicer = splicer_in_round()
        play(splicer, say("a"))
        before = splicer.finished, splicer.answer().complete
        play(splicer, end)
        assert before == (False, False)
        assert (splicer.finished, splicer.answer().complete) == (True, True)


def test_no_finish_is_invented_for_a_round_without() -> None:
    """`[DONE]` alone ends a stream that never gave a reason."""
    seen = run(say("a") + END)
    assert (seen.finishes, seen.dones) == ([], 1)


def test_more_fields_can_be_put_on_the_finish_chunk() -> None:
    """That is where explanations and memory notes go."""
    splicer = splicer_in_round()
    play(splicer, say("a") + STOP)
    (last,) = see(splicer.finish(None, {"usher": {"rounds": 1}})).chunks
    assert last == json.loads(STOP[6:]) | {"usher": {"rounds": 1}}
