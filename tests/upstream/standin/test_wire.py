"""Completions and chunks."""

import json

from proxy.stream.sse import Splitter
from proxy.upstream.standin.model import Call, Said
from proxy.upstream.standin.wire import Reply, message_of, render_completion, render_stream
from proxy.wire import JSONObject

TEXT = "Es ist  schön –\nja."
SAID = Said(TEXT, (Call("a", '{"city":"Zürich","days":3}'), Call("b", "{}")))
USAGE: JSONObject = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def _reply(choices: int = 1, *, ask_usage: bool = False) -> Reply:
    message = message_of(SAID, b"seed")
    return Reply(b"seed", "m", message, "tool_calls", USAGE, choices, ask_usage)


def _chunks(reply: Reply) -> list[JSONObject]:
    frames = Splitter().feed(b"".join(render_stream(reply)))
    assert frames[-1].data == b"[DONE]"
    return [json.loads(frame.data or b"") for frame in frames[:-1]]


def _join(chunks: list[JSONObject], index: int = 0) -> JSONObject:
    """Put a stream together again as a client does."""
    text, calls = "", dict[int, JSONObject]()
    for chunk in chunks:
        for choice in (c for c in chunk["choices"] if c["index"] == index):
            text += choice["delta"].get("content") or ""
            for part in choice["delta"].get("tool_calls", ()):
                call = calls.setdefault(part["index"], {"arguments": ""})
                call.setdefault("id", part.get("id"))
                call.setdefault("name", part["function"].get("name"))
                call["arguments"] += part["function"]["arguments"]
    return {"text": text, "calls": [calls[i] for i in sorted(calls)]}


def test_a_stream_says_what_the_whole_answer_says() -> None:
    """Text and calls in pieces add up to the same message."""
    message = json.loads(render_completion(_reply()))["choices"][0]["message"]
    calls = [{"id": call["id"], **call["function"]} for call in message["tool_calls"]]
    assert _join(_chunks(_reply())) == {"text": TEXT, "calls": calls}


def test_a_stream_has_one_role_and_one_finish() -> None:
    """And the same id, model and moment in every chunk."""
    chunks = _chunks(_reply())
    choices = [chunk["choices"][0] for chunk in chunks]
    assert sum("role" in choice["delta"] for choice in choices) == 1
    assert [c["finish_reason"] for c in choices if c["finish_reason"]] == ["tool_calls"]
    assert len({(c["id"], c["model"], c["created"]) for c in chunks}) == 1


def test_arguments_come_in_fragments() -> None:
    """Only the first one names the call."""
    parts = [p for c in _chunks(_reply()) for p in c["choices"][0]["delta"].get("tool_calls", ())]
    assert [part["index"] for part in parts] == [0, 0, 0, 0, 1, 1]
    assert [("id" in part) for part in parts] == [True, False, False, False, True, False]


def test_usage_is_streamed_only_when_asked_for() -> None:
    """In one last chunk without choices; `null` before."""
    assert all("usage" not in chunk for chunk in _chunks(_reply()))
    chunks = _chunks(_reply(ask_usage=True))
    assert (chunks[-1]["choices"], chunks[-1]["usage"]) == ([], USAGE)
    assert all(chunk["usage"] is None for chunk in chunks[:-1])


def test_several_choices_say_the_same() -> None:
    """`n` copies, each with an index of its own."""
    chunks = _chunks(_reply(choices=2))
    assert _join(chunks, 0) == _join(chunks, 1)
    assert len(json.loads(render_completion(_reply(choices=2)))["choices"]) == 2


def test_the_same_request_gets_the_same_bytes_and_another_one_other_ids() -> None:
    """Ids follow from the request."""
    assert render_completion(_reply()) == render_completion(_reply())
    first, second = message_of(SAID, b"seed"), message_of(SAID, b"other")
    ids = [call["id"] for call in (*first["tool_calls"], *second["tool_calls"])]
    assert len(set(ids)) == 4


def test_unknown_fields_of_a_message_are_streamed_too() -> None:
    """For scripts that imitate other providers."""
    message = {"role": "assistant", "content": "x", "reasoning_content": "hm"}
    chunks = _chunks(Reply(b"", "m", message, "stop", USAGE))
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert {"reasoning_content": "hm"} in deltas
