"""Several upstream rounds reach the client as one stream, told as wire transcripts."""

import json

import pytest

from proxy.stream.calls import Call
from proxy.stream.splice import Splicer
from proxy.wire import JSON, JSONObject
from tests.stream.transcript import (
    END,
    SECOND,
    TOP,
    Seen,
    calls,
    chunk,
    event,
    opening,
    piece,
    play,
    play_rounds,
    say,
    see,
)

ROLE = chunk({"role": "assistant", "content": ""})
STOP = chunk({}, "stop")
CALLED = chunk({}, "tool_calls")
USAGE: JSONObject = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
SEARCH = calls(opening(0, "s", "tool_search")) + calls(piece(0, '{"queries":["x"]}'))
REAL = calls(opening(0, "a", "t0")) + calls(piece(0, '{"q":')) + calls(piece(0, "1}"))
VISIBLE = {"t0", "t1"}
"""The client's tools; `tool_search` is hidden."""


def run(
    *rounds: bytes, usage: JSONObject | None = None, asked: bool = False, hold: bool = False
) -> Seen:
    """The client's view of these rounds, the last of which is the visible one."""
    splicer = Splicer(include_usage=asked, hold_text=hold)
    wire = play_rounds(splicer, rounds, VISIBLE)
    seen = see(wire + splicer.finish(usage))
    assert seen.text == splicer.text
    assert b"tool_search" not in wire
    return seen


def splicer_in_round(*, asked: bool = False, hold: bool = False) -> Splicer:
    splicer = Splicer(include_usage=asked, hold_text=hold)
    splicer.start_round(VISIBLE)
    return splicer


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_one_round_of_text_passes_byte_for_byte(end: bytes) -> None:
    """Finish, usage and end included, when the client asked for usage."""
    usage = event(TOP | {"choices": [], "usage": USAGE})
    wire = (ROLE + say("a") + say("b") + STOP + usage).replace(b"\n", end)
    splicer = splicer_in_round(asked=True)
    assert play(splicer, wire + END) + splicer.finish(USAGE) == wire + END


def test_one_round_of_visible_calls_passes_byte_for_byte() -> None:
    """Text, reasoning, two calls with interleaved arguments, unknown fields."""
    wire = ROLE + chunk({"reasoning_content": "r"}) + say("a") + chunk({"odd": [1]})
    wire += calls(opening(0, "a", "t0")) + calls(opening(1, "b", "t1"))
    wire += calls(piece(1, "{")) + calls(piece(0, "{}")) + calls(piece(1, "}")) + CALLED
    splicer = splicer_in_round()
    assert play(splicer, wire + END) + splicer.finish(None) == wire + END


@pytest.mark.item("stream/refusal", "stream/reasoning-content")
def test_words_are_not_kept_waiting() -> None:
    """Text, reasoning, refusals and unknown fields go out with the event that brings them."""
    splicer = splicer_in_round()
    signed = {"reasoning_details": [{"signature": "e"}]}
    for delta in ({"content": "a"}, {"reasoning": "b"}, {"refusal": "c"}, {"odd": "d"}, signed):
        assert play(splicer, chunk(delta)) == chunk(delta)


def test_the_first_words_go_out_at_once() -> None:
    """The role that waited goes out in front of them, in any round."""
    firsts: list[JSONObject] = [{"content": "a"}, {"reasoning": "a"}, {"reasoning_details": [{}]}]
    for first in firsts:
        splicer = splicer_in_round()
        assert play(splicer, ROLE) == b""
        assert play(splicer, chunk(first)) == ROLE + chunk(first)
    splicer = splicer_in_round()
    assert play(splicer, ROLE + SEARCH + CALLED) == b""
    splicer.start_round(VISIBLE)
    assert play(splicer, chunk({"role": "assistant", "content": ""}, top=SECOND)) == b""
    assert see(play(splicer, say("a", SECOND))).text == "a"


def test_a_hidden_round_leaves_no_trace() -> None:
    """Its text is shown, its call, finish reason, id and usage are not."""
    first = ROLE + say("Looking.") + SEARCH + CALLED + END
    second = (ROLE + say("Found.") + STOP).replace(b"chatcmpl-1", b"chatcmpl-2") + END
    seen = run(first, second)
    assert seen.text == "Looking.\n\nFound."
    assert (seen.finishes, seen.roles, seen.dones, seen.calls) == (["stop"], ["assistant"], 1, [])
    assert seen.heads("id") == {"chatcmpl-1"}


def test_the_head_of_the_first_round_stays() -> None:
    """Id, created, model, fingerprint and tier, in every chunk of every round."""
    first: JSONObject = TOP | {"system_fingerprint": "f1", "service_tier": "default"}
    second: JSONObject = SECOND | {"model": "n", "system_fingerprint": "f2", "service_tier": "flex"}
    seen = run(
        chunk({"role": "assistant"}, top=first) + SEARCH,
        say("a", second) + say("b", second) + calls(opening(0, "a", "t0"), top=second),
    )
    assert {name: seen.heads(name) for name in ("id", "created", "model")} == {
        "id": {"chatcmpl-1"},
        "created": {1},
        "model": {"m"},
    }
    assert seen.heads("system_fingerprint") == {"f1"}
    assert seen.heads("service_tier") == {"default"}


def test_an_id_per_chunk_becomes_one() -> None:
    """Clients that merge by id would show one reply as many."""
    wire = b"".join([say("x", top=TOP | {"id": f"id-{number}"}) for number in range(4)])
    tops = [TOP | {"id": f"call-{number}"} for number in range(4)]
    parts = [opening(0, "a", "t0"), piece(0, "{"), piece(0, " "), piece(0, "}")]
    wire += b"".join([calls(part, top=top) for part, top in zip(parts, tops, strict=True)])
    splicer = splicer_in_round()
    seen = see(play(splicer, wire + CALLED))
    assert seen.heads("id") == {"id-0"}
    assert (seen.text, seen.calls) == ("xxxx", [("a", "t0", "{ }")])
    assert splicer.answer().calls[0].arguments == "{ }"


@pytest.mark.parametrize(
    ("texts", "joined"),
    [
        (["a", "b"], "a\n\nb"),
        (["a\n", "b"], "a\nb"),
        (["a ", "b"], "a b"),
        (["a", "\nb"], "a\nb"),
        (["", "b"], "b"),
        (["a", "", "b"], "a\n\nb"),
    ],
)
def test_texts_of_rounds_do_not_run_into_each_other(texts: list[str], joined: str) -> None:
    """A blank line comes between them unless there is a break already."""
    rounds = [ROLE + (say(text) if text else b"") + SEARCH + CALLED for text in texts[:-1]]
    assert run(*rounds, ROLE + say(texts[-1]) + STOP).text == joined


@pytest.mark.item("calls/real-first", "calls/index-gaps")
def test_a_mixed_message_shows_the_real_calls_gapless() -> None:
    """The hidden call before, between and after them disappears, fragments interleaved or not."""
    seen = run(
        ROLE
        + calls(opening(0, "s", "tool_search"), opening(1, "a", "t0"))
        + calls(opening(2, "u", "tool_search"))
        + calls(opening(3, "b", "t1", "{"), piece(1, "{}"), piece(0, '{"queries":[]}'))
        + calls(piece(2, "{}"), piece(3, "}"))
        + CALLED
    )
    assert seen.calls == [("a", "t0", "{}"), ("b", "t1", "{}")]
    assert seen.finishes == ["tool_calls"]


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
    renamed = Call(0, held.id, "t9", '{"q":1}', held.raw)
    out += splicer.release([renamed]) + splicer.finish(None)
    seen = see(out)
    assert (seen.roles, seen.calls) == (["assistant"], [("x", "t9", '{"q":1}')])
    assert seen.finishes == ["tool_calls"]


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


def test_a_turn_without_rounds_is_an_empty_stream() -> None:
    """Nothing is complete, nothing was said, and only the end goes out."""
    splicer = Splicer(include_usage=True)
    assert not splicer.answer().complete
    assert (splicer.release([]), splicer.started, splicer.finished) == (b"", False, False)
    assert splicer.finish(None) == END


@pytest.mark.item("stream/repeated-role")
def test_a_repeated_finish_or_role_comes_once() -> None:
    """Empty reasons are none, and a role on every chunk becomes one on the first."""
    again = {"role": "assistant", "content": "a"}
    wire = ROLE + chunk(again, "") + chunk(again) + chunk(again | {"odd": 1})
    seen = run(wire + chunk(again, "stop") + chunk({"role": "assistant"}, "stop"))
    assert (seen.roles, seen.finishes, seen.text) == (["assistant"], ["stop"], "aaaa")
    late = run(say("b") + chunk(again) + chunk(again) + STOP)
    assert (late.roles, late.text) == (["assistant"], "baa")


def test_an_empty_chunk_of_a_later_round_is_dropped() -> None:
    """A repeated role is all that it holds."""
    role = chunk({"role": "assistant", "content": ""}, top=SECOND)
    wire = role + say("a", SECOND) + role + role + say("b", SECOND) + STOP
    seen = run(ROLE + SEARCH + CALLED, wire)
    contents = [chunk["choices"][0]["delta"].get("content") for chunk in seen.chunks]
    assert (seen.roles, contents) == (["assistant"], ["", "a", "b", None])


def test_arguments_are_complete_in_the_answer_whichever_way_they_came() -> None:
    """Live or held, with text or a role beside them, empty or not."""
    for name in ("t0", "tool_search"):
        splicer = splicer_in_round()
        beside = chunk({"role": "assistant", "content": "a", "tool_calls": [piece(0, "1")]})
        wire = calls(opening(0, "a", name)) + calls(piece(0, "[")) + calls(piece(0, "")) + beside
        out = play(splicer, wire + calls(piece(0, "]")))
        answer = splicer.answer()
        assert (answer.calls[0].arguments, answer.message["content"]) == ("[1]", "a")
        assert see(out).calls == ([("a", "t0", "[1]")] if name == "t0" else [])
        assert see(out).text == "a"


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
    assert seen.text == "a"
    assert seen.usages == ([USAGE] if asked else [])
    if asked:
        assert seen.chunks[-1]["choices"] == []
    else:
        assert not any("usage" in chunk for chunk in seen.chunks)


@pytest.mark.item("stream/no-usage")
def test_usage_is_the_sum_that_the_caller_states() -> None:
    """The chunk of the last round is not it when there were more; unknown usage has no chunk."""
    last = say("a", SECOND) + STOP + event(SECOND | {"choices": [], "usage": USAGE})
    seen = run(SEARCH + CALLED, last, usage={"total_tokens": 9}, asked=True)
    assert seen.usages == [{"total_tokens": 9}]
    assert seen.heads("id") == {"chatcmpl-1"}
    assert run(last, asked=True).usages == []


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
    "error",
    [
        event({"error": {"message": "x", "code": 502}}),
        event({"error": "overloaded"}),
        b'event: error\ndata: {"message":"x"}\n\n',
        b"event: error\ndata: broken\n\n",
        event({"object": "error", "message": "x"}),
    ],
)
def test_an_upstream_error_passes_verbatim_and_is_the_end(error: bytes) -> None:
    """Nothing follows it but `[DONE]`, and nobody invents a finish reason."""
    splicer = splicer_in_round()
    out = play(splicer, say("a") + error + say("b") + STOP + END)
    out += splicer.finish(USAGE) + splicer.fail({"message": "y"}) + splicer.release([])
    assert out == say("a") + error + END
    assert splicer.answer().error is not None
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


@pytest.mark.item("stream/comments", "stream/byte-order-mark")
def test_events_that_crash_sdks_are_removed() -> None:
    """Ids, retries, comments, byte order marks, events without data or with empty data."""
    wire = b"\xef\xbb\xbf" + ROLE + b": note\n\nid: 1\n\nretry: 5\n\ndata:\n\ndata: \n\n"
    wire += b"event: ping\n\nid: 2\n" + say("a") + b"event: message\n" + say("b") + b"\n\n"
    splicer = splicer_in_round()
    assert play(splicer, wire) == ROLE + say("a") + b"event: message\n" + say("b")


@pytest.mark.parametrize(
    "data",
    [
        b": keepalive",
        b"[1,2]",
        b'{"seed":36893488147419103232}',
        b'{"choices":null}',
        b'{"choices":[1]}',
    ],
)
def test_what_cannot_be_read_passes_as_it_is(data: bytes) -> None:
    """Usher changes only what it understands."""
    wire = b"data: " + data + b"\n\n"
    assert play(splicer_in_round(), say("a") + wire) == say("a") + wire


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


def test_more_fields_can_be_put_on_the_finish_chunk() -> None:
    """That is where explanations and memory notes go."""
    splicer = splicer_in_round()
    play(splicer, say("a") + STOP)
    (last,) = see(splicer.finish(None, {"usher": {"rounds": 1}})).chunks
    assert last == json.loads(STOP[6:]) | {"usher": {"rounds": 1}}
