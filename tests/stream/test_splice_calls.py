"""Calls of several rounds reach the client live, whole or never."""

import pytest

from proxy.stream.calls import Call
from proxy.stream.splice import Splicer
from tests.stream.transcript import (
    CALLED,
    END,
    REAL,
    ROLE,
    SEARCH,
    STOP,
    TOP,
    calls,
    chunk,
    event,
    opening,
    piece,
    play,
    run,
    say,
    see,
    splicer_in_round,
)


def test_an_event_with_text_and_a_hidden_call_keeps_its_text() -> None:
    """Logprobs go with the call, because they may spell it."""
    choice = {
        "index": 0,
        "delta": {
            "role": "assistant",
            "content": "a",
            "tool_calls": [opening(0, "s", "tool_search")],
        },
        "logprobs": {"content": [{"token": "tool_search"}]},
        "finish_reason": None,
    }
    seen = run(event(TOP | {"choices": [choice], "obfuscation": "x"}) + CALLED, say("b") + STOP)
    assert seen.text == "a\n\nb"
    assert seen.chunks[0]["choices"][0]["logprobs"] is None
    assert seen.chunks[0]["obfuscation"] == "x"
    assert "tool_calls" not in seen.chunks[0]["choices"][0]["delta"]


def test_nothing_beside_a_finish_tells_its_reason() -> None:
    """The words of a finish event go out at once, its reason in no spelling."""
    choice = {"index": 0, "delta": {"content": "a"}, "native_finish_reason": "tool_calls"}
    splicer = splicer_in_round()
    out = play(splicer, event(TOP | {"choices": [choice | {"finish_reason": "tool_calls"}]}))
    assert (see(out).text, b'"tool_calls"' in out) == ("a", False)


def test_a_whole_answer_in_one_event_is_taken_apart() -> None:
    """Text goes out at once, the finish at the end, the hidden call never."""
    delta = {
        "role": "assistant",
        "content": "a",
        "tool_calls": [opening(0, "s", "tool_search", "{}")],
    }
    splicer = splicer_in_round()
    assert see(play(splicer, chunk(delta, "tool_calls"))).text == "a"
    assert splicer.answer().calls[0].arguments == "{}"
    assert see(splicer.finish(None)).finishes == ["stop"]


def test_calls_may_be_released_after_all() -> None:
    """A held call that turns out to be the client's comes whole, and the reason fits it."""
    splicer = splicer_in_round()
    out = play(splicer, calls(opening(0, "x", "unloaded", "{}")) + STOP + END)
    (held,) = splicer.answer().calls
    renamed = [Call(0, id_, "t9", '{"q":1}', held.raw) for id_ in "xy"]
    out += splicer.release(renamed)
    assert splicer.started
    seen = see(out + splicer.finish(None))
    assert (seen.roles, seen.finishes) == (["assistant"], ["tool_calls"])
    assert seen.calls == [("x", "t9", '{"q":1}'), ("y", "t9", '{"q":1}')]


@pytest.mark.parametrize("asked", [True, False])
def test_chunks_of_our_own_have_all_that_is_required(asked: bool) -> None:
    """Index, null reason, and a null usage for who asked for usage."""
    splicer = splicer_in_round(asked=asked)
    play(splicer, ROLE + calls(opening(0, "x", "late", "{}")) + CALLED)
    (_, own) = see(splicer.release(splicer.answer().calls)).chunks
    delta = {"tool_calls": [opening(0, "x", "late", "{}")]}
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    assert own == TOP | {"choices": [choice]} | ({"usage": None} if asked else {})


def test_released_calls_follow_live_ones() -> None:
    """Their indices go on where the live ones ended."""
    splicer = splicer_in_round()
    wire = play(splicer, ROLE + calls(opening(0, "x", "late", "{}")) + calls(opening(1, "a", "t0")))
    wire += play(splicer, CALLED + END)
    late = splicer.answer().calls[0]
    seen = see(wire + splicer.release([late]) + splicer.finish(None))
    assert seen.calls == [("a", "t0", ""), ("x", "late", "{}")]
    assert splicer.release([late]) == b""


def test_a_call_without_arguments_is_not_lost() -> None:
    """It waits for its name to be complete: the finish, or `[DONE]` alone, completes it."""
    for end, finishes in ((CALLED + END, ["tool_calls"]), (END, [])):
        splicer = Splicer(include_usage=False)
        splicer.start_round({"tool"}, ["tool_search"])
        out = play(splicer, ROLE + calls(opening(0, "a", "tool")))
        assert out == b""
        seen = see(out + play(splicer, end) + splicer.finish(None))
        assert (seen.roles, seen.finishes) == (["assistant"], finishes)
        assert seen.calls == [("a", "tool", "")]


def test_the_finish_reason_of_a_dropped_call_is_no_tool_calls() -> None:
    """A client that sees no call must not wait for one; a cut round keeps its own reason."""
    assert run(say("a") + SEARCH + CALLED).finishes == ["stop"]
    assert run(say("a") + SEARCH + chunk({}, "length")).finishes == ["length"]


def test_a_deviating_reason_is_mended_only_where_calls_were_touched() -> None:
    """A single round keeps the provider's `stop`; behind hidden rounds it would be our mistake."""
    odd = REAL + STOP
    assert run(odd).finishes == ["stop"]
    assert run(SEARCH + CALLED, odd).finishes == ["tool_calls"]


def test_a_hidden_reason_does_not_come_back() -> None:
    """A last round without a reason of its own has none."""
    assert run(SEARCH + CALLED, say("a") + END).finishes == []


def test_arguments_are_complete_in_the_answer_whichever_way_they_came() -> None:
    """Live or held, with text or a role beside them, empty or not."""
    for name in ("t0", "tool_search"):
        splicer = splicer_in_round()
        wire = calls(opening(0, "a", name)) + calls(piece(0, "[")) + calls(piece(0, ""))
        for beside in ({"content": "a"}, {"role": "assistant"}, {"role": "x", "content": "b"}):
            wire += chunk({**beside, "tool_calls": [piece(0, "1")]})
        out = play(splicer, wire + calls(piece(0, "]")))
        answer = splicer.answer()
        assert (answer.calls[0].arguments, answer.message["content"]) == ("[111]", "ab")
        assert see(out).calls == ([("a", "t0", "[111]")] if name == "t0" else [])
        assert (see(out).text, see(out).roles) == ("ab", ["assistant"])
