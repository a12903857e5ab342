"""Several upstream rounds reach the client as one stream, told as wire transcripts."""

import pytest

from proxy.stream.splice import Splicer
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
    piece,
    play,
    run,
    say,
    see,
    splicer_in_round,
)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_one_round_of_text_passes_byte_for_byte(end: bytes) -> None:
    """Finish, usage and end included, when the client asked for usage."""
    words = [chunk({"role": "assistant"}, usage=None), chunk({"content": "a"}, usage=None)]
    usage = event(TOP | {"choices": [], "usage": USAGE})
    wire = b"".join([*words, say("b"), STOP, usage]).replace(b"\n", end)
    splicer = splicer_in_round(asked=True)
    assert play(splicer, wire + END) + splicer.finish(USAGE) == wire + END
    assert splicer.answer().message["content"] == "ab"


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
    firsts: list[JSONObject] = [{"reasoning_content": "a"}, {"reasoning_details": [{}]}]
    for first in [*firsts, *[{name: "a"} for name in ("content", "reasoning", "refusal")]]:
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


def test_each_round_has_an_answer_of_its_own() -> None:
    """Nothing of the round before is in it."""
    splicer = splicer_in_round()
    play(splicer, say("a") + SEARCH + CALLED)
    first = splicer.answer()
    splicer.start_round(VISIBLE)
    play(splicer, say("b", SECOND) + STOP)
    second = splicer.answer()
    assert (len(first.calls), len(second.calls)) == (1, 0)
    assert (second.message["content"], second.head["id"]) == ("b", "chatcmpl-2")


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
    assert run(*rounds, ROLE + say(texts[-1]) + say("…") + STOP).text == f"{joined}…"


def test_content_in_parts_is_text_too() -> None:
    """It counts as what the client has read."""
    splicer = splicer_in_round()
    parts = [{"type": "thinking"}, {"type": "text", "text": "b"}, {"type": "text", "text": None}]
    play(splicer, say("a") + SEARCH + CALLED)
    splicer.start_round(VISIBLE)
    assert chunk({"content": parts}) == play(splicer, chunk({"content": parts}))
    assert splicer.text == "ab"


def test_fields_of_a_choice_survive_a_rewrite() -> None:
    """Logprobs and whatever else a provider puts beside the delta."""
    delta = {"role": "assistant", "content": "a", "tool_calls": None, "odd": 1}
    beside: JSONObject = {"index": 0, "logprobs": {"content": []}, "filter": {}}
    wire = event(TOP | {"choices": [beside | {"delta": delta, "finish_reason": None}]})
    (choice,) = run(ROLE + wire + STOP).chunks[1]["choices"]
    assert choice.items() >= beside.items()


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


@pytest.mark.item("stream/no-usage")
def test_usage_is_the_sum_that_the_caller_states() -> None:
    """The chunk of the last round is not it when there were more; unknown usage has no chunk."""
    last = say("a", SECOND) + STOP + event(SECOND | {"choices": [], "usage": USAGE})
    seen = run(SEARCH + CALLED, last, usage={"total_tokens": 9}, asked=True)
    assert seen.usages == [{"total_tokens": 9}]
    assert seen.heads("id") == {"chatcmpl-1"}
    assert run(SEARCH + CALLED, last, usage=USAGE, asked=True).heads("id") == {"chatcmpl-1"}
    assert run(last, asked=True).usages == []


@pytest.mark.item("stream/comments", "stream/byte-order-mark")
def test_events_that_crash_sdks_are_removed() -> None:
    """Ids, retries, comments, byte order marks, events without data or with empty data."""
    wire = b"\xef\xbb\xbf" + ROLE + b": note\n\nid: 1\n\nretry: 5\n\ndata:\n\ndata: \n\n"
    wire += b"event: ping\n\nid: 2\n" + say("a") + b"event: message\n" + say("b") + b"\n\n"
    splicer = splicer_in_round()
    assert play(splicer, wire) == ROLE + say("a") + b"event: message\n" + say("b")
