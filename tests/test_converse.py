"""Conversations whose tools are deferred: what the client gets, what the upstream got."""

from collections.abc import AsyncIterator

import orjson
import pytest

from proxy.errors import UpstreamError, UpstreamTimeout
from proxy.plan.exchange import Reply
from proxy.settings import Prediction
from proxy.upstream.transport import Prepared
from proxy.wire import Headers, JSONObject
from tests.turns import (
    JSON_TYPE,
    SETTINGS,
    SSE_TYPE,
    call,
    chunks_of,
    completion,
    events,
    read,
    request,
    search,
    stage,
)

pytestmark = pytest.mark.anyio


def _header(reply: Reply, name: bytes) -> bytes | None:
    return dict(reply.headers).get(name)


def _message(body: bytes) -> JSONObject:
    message: JSONObject = orjson.loads(body)["choices"][0]["message"]
    return message


@pytest.mark.item("catalog/all-deferred", "params/choice-auto", "reported/nothing-declared")
async def test_tools_leave_the_prompt() -> None:
    """The upstream gets the search tool instead of six tools, and the reply is its own bytes."""
    upstream = completion("Hello!")
    raw = await upstream.read()
    theatre = stage(completion("Hello!"))
    reply = await theatre.chat(request())
    assert [tool["function"]["name"] for tool in theatre.bodies[0]["tools"]] == ["tool_search"]
    assert await read(reply) == raw
    assert _header(reply, b"x-usher-tools") == b"kept=0;deferred=6;predicted=0;discovered=0"
    assert _header(reply, b"x-usher-rounds") == b"1"


@pytest.mark.item("search/text-beside", "reported/found-but-unknown")
async def test_a_search_stays_hidden() -> None:
    """Two upstream calls make one reply: first id, last answer, usage of both."""
    theatre = stage(
        completion("Let me look.", [search("storm warnings")]),
        completion(None, [call("weather_alerts", {"region": "x"})], number=2),
    )
    reply = orjson.loads(await read(await theatre.chat(request())))
    message = reply["choices"][0]["message"]
    assert [made["function"]["name"] for made in message["tool_calls"]] == ["weather_alerts"]
    assert message["content"] == "Let me look."
    assert (reply["id"], reply["created"]) == ("chatcmpl-1", 1001)
    assert reply["usage"] == {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23}
    assert [row.context for row in theatre.ledger.rows] == ["search_round", "main"]
    assert [row.round for row in theatre.ledger.rows] == [1, 2]
    found, answered = (row.detail for row in theatre.ledger.rows)
    assert found is not None
    assert "weather_alerts" in found["found"]
    assert found.keys() == {"found"}, "names of tools, and nothing that was searched for"
    assert answered is None
    assert theatre.ledger.turns[0].outcome == "ok"


@pytest.mark.item(
    "search/text-beside",
    "stream/include-usage",
    "reported/found-but-unknown",
    "reported/early-finish",
)
async def test_a_streamed_search_stays_hidden() -> None:
    """The client sees one stream: one id, text of both rounds, the real call, one finish."""
    theatre = stage(
        events("Let |me look.", [search("storm warnings")]),
        events("Found.", [call("weather_alerts", {"region": "x"})], number=2),
    )
    reply = await theatre.chat(request(stream=True))
    body = await read(reply)
    chunks = chunks_of(body)
    assert b"tool_search" not in body
    assert body.endswith(b"data: [DONE]\n\n")
    assert {chunk["id"] for chunk in chunks} == {"chatcmpl-1"}
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    assert text == "Let me look.\n\nFound."
    assert [c["finish_reason"] for c in choices if c["finish_reason"]] == ["tool_calls"]
    assert not any("usage" in chunk for chunk in chunks)
    assert [row.prompt_tokens for row in theatre.ledger.rows] == [10, 10]


@pytest.mark.item("stream/include-usage")
async def test_usage_is_streamed_to_those_who_ask() -> None:
    """The sum of all rounds in one last chunk."""
    theatre = stage(events(None, [search("storm")]), events("Done.", number=2))
    body = request(stream=True, stream_options={"include_usage": True})
    chunks = chunks_of(await read(await theatre.chat(body)))
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["prompt_tokens"] == 20


@pytest.mark.item("calls/unloaded-valid")
async def test_an_unloaded_call_streams_as_a_real_one() -> None:
    """It is held until its arguments are checked and then released whole."""
    theatre = stage(events(None, [call("mail_delete", {"id": "42"})]))
    chunks = chunks_of(await read(await theatre.chat(request(stream=True))))
    calls = [
        c for chunk in chunks for x in chunk["choices"] for c in x["delta"].get("tool_calls", [])
    ]
    assert calls[0]["function"] == {"name": "mail_delete", "arguments": '{"id":42}'}
    assert calls[0]["index"] == 0


@pytest.mark.item("calls/mixed")
@pytest.mark.parametrize("stream", [False, True])
async def test_a_mixed_message_is_completed_on_the_next_request(stream: bool) -> None:
    """The parked search returns to the history right where it happened."""
    both = [search("storm warnings"), call("mail_delete", {"id": 1}, "c2")]
    first = events("Hm.", both) if stream else completion("Hm.", both)
    theatre = stage(first, completion("Done.", number=2))
    await read(await theatre.chat(request(stream=stream)))
    seen: JSONObject = {"role": "assistant", "content": "Hm.", "tool_calls": [both[1]]}
    result: JSONObject = {"role": "tool", "tool_call_id": "c2", "content": "deleted"}
    await theatre.chat(request({"role": "user", "content": "hello"}, seen, result))
    messages = theatre.bodies[1]["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool"]
    assert [made["id"] for made in messages[1]["tool_calls"]] == ["s1", "c2"]
    assert [message["tool_call_id"] for message in messages[2:]] == ["s1", "c2"]
    names = [tool["function"]["name"] for tool in theatre.bodies[1]["tools"]]
    assert "weather_alerts" in names


@pytest.mark.parametrize("stream", [False, True])
async def test_a_later_request_extends_the_earlier_one(stream: bool) -> None:
    """Messages and tools of the last upstream call are a prefix of the next turn's first one."""
    make = events if stream else completion
    theatre = stage(
        make("Let me see.", [search("storm warnings")]),
        make("It is calm.", number=2),
        make("Bye.", number=3),
    )
    user: JSONObject = {"role": "user", "content": "hello"}
    await read(await theatre.chat(request(user, stream=stream)))
    said = "Let me see.\n\nIt is calm."
    await theatre.chat(request(user, {"role": "assistant", "content": said}, user, stream=stream))
    before, after = theatre.bodies[1], theatre.bodies[2]
    assert after["messages"][: len(before["messages"])] == before["messages"]
    assert after["messages"][3]["content"] == "It is calm."
    assert after["tools"][: len(before["tools"])] == before["tools"]


@pytest.mark.parametrize("stream", [False, True])
async def test_an_error_of_the_first_round_is_the_upstreams_own(stream: bool) -> None:
    """Status, headers and body pass as they are, a stream was never begun."""
    refusal = Prepared(429, [*JSON_TYPE, (b"retry-after", b"7")], b'{"error": {"code":"x"}}')
    reply = await stage(refusal).chat(request(stream=stream))
    assert reply.status == 429
    assert _header(reply, b"retry-after") == b"7"
    assert await read(reply) == b'{"error": {"code":"x"}}'


async def test_an_error_of_a_hidden_round_is_the_reply() -> None:
    """Nothing was visible yet, so the client gets status and body."""
    refusal = Prepared(500, JSON_TYPE, b'{"error":{"message":"boom"}}')
    theatre = stage(completion(None, [search("x")]), refusal)
    reply = await theatre.chat(request())
    assert reply.status == 500
    assert [row.outcome for row in theatre.ledger.rows] == ["ok", "http_500"]
    assert theatre.ledger.turns[0].outcome == "http_500"


async def test_an_error_of_a_hidden_streamed_round_keeps_its_status() -> None:
    """While the client has seen nothing the stream raises, so that the edge can answer plainly."""
    refusal = Prepared(503, JSON_TYPE, b'{"error":{"message":"boom","code":"c"}}')
    theatre = stage(events(None, [search("x")]), refusal)
    reply = await theatre.chat(request(stream=True))
    with pytest.raises(Exception, match="boom") as caught:
        await read(reply)
    assert getattr(caught.value, "status", None) == 503
    assert theatre.ledger.turns[0].outcome == "http_503"


async def test_an_error_after_visible_text_is_in_band() -> None:
    """The stream ends with the error and without an invented finish reason."""
    refusal = Prepared(503, JSON_TYPE, b'{"error":{"message":"boom","code":"c"}}')
    theatre = stage(events("Look:", [search("x")]), refusal)
    body = await read(await theatre.chat(request(stream=True)))
    assert b'"error":{"message":"boom","code":"c"}' in body
    assert b'"finish_reason":"' not in body
    assert body.endswith(b"data: [DONE]\n\n")


@pytest.mark.item("stream/cut-after-visible")
async def test_a_truncated_stream_says_so() -> None:
    """An upstream that stops without a finish reason is an error, never a stop."""
    theatre = stage(events("Half a", finished=False))
    body = await read(await theatre.chat(request(stream=True)))
    assert b"stream_truncated" in body
    assert theatre.ledger.rows[0].outcome == "stream_truncated"


async def test_a_json_answer_to_a_stream_request_is_spliced_as_json() -> None:
    """Some servers ignore `stream`; the client gets what they said."""
    theatre = stage(completion("Hi"))
    reply = await theatre.chat(request(stream=True))
    assert _message(await read(reply))["content"] == "Hi"


async def test_a_reply_that_is_no_completion_passes() -> None:
    """What cannot be understood is handed on unchanged."""
    for body in (b"<html>", b"{}", b'{"choices":[]}', b"[]"):
        reply = await stage(Prepared(200, JSON_TYPE, body)).chat(request())
        assert await read(reply) == body


@pytest.mark.item("stream/error-mid-stream")
async def test_an_upstream_error_frame_ends_the_stream() -> None:
    """It is the upstream's word and passes verbatim."""
    frame = b'data: {"error":{"message":"overloaded"}}\n\n'
    theatre = stage(Prepared(200, SSE_TYPE, frame))
    body = await read(await theatre.chat(request(stream=True)))
    assert frame in body
    assert theatre.ledger.rows[0].outcome == "upstream_error"


@pytest.mark.item("params/response-format")
async def test_json_replies_hold_narration_back() -> None:
    """Text before a search would spoil a reply that must be JSON."""
    wanted = {"response_format": {"type": "json_object"}}
    theatre = stage(events("Let me see.", [search("x")]), events('{"a":1}', number=2))
    chunks = chunks_of(await read(await theatre.chat(request(stream=True, **wanted))))
    text = "".join(
        choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]
    )
    assert text == '{"a":1}'
    theatre = stage(completion("Let me see.", [search("x")]), completion('{"a":1}', number=2))
    assert _message(await read(await theatre.chat(request(**wanted))))["content"] == '{"a":1}'


async def test_a_reply_explains_itself_when_asked() -> None:
    """The facts are on the reply, or on the finish chunk of a stream, and nowhere else."""
    headers: Headers = [(b"x-usher-explain", b"1")]
    theatre = stage(completion(None, [search("storm")]), completion("Calm.", number=2))
    reply = orjson.loads(await read(await theatre.chat(request(), headers=headers)))
    assert reply["usher"]["tools"]["deferred"] == 6
    assert reply["usher"]["rounds"] == 2
    assert reply["usher"]["catalogue"]
    assert {decision["fate"] for decision in reply["usher"]["decisions"]} == {"deferred"}
    theatre = stage(events("Hi"))
    chunks = chunks_of(await read(await theatre.chat(request(stream=True), headers=headers)))
    told = [chunk for chunk in chunks if "usher" in chunk]
    assert len(told) == 1
    assert told[0]["choices"][0]["finish_reason"] == "stop"


async def test_a_model_that_only_searches_gets_one_word_and_then_answers() -> None:
    """After the last round it is told that searching is over, and its answer is the reply."""
    theatre = stage(
        completion(None, [search("qqqzz", "s1")]),
        completion(None, [search("vvvxx", "s2")], number=2),
        completion(None, [search("wwwkk", "s3")], number=3),
        completion("There is no such tool.", number=4),
    )
    reply = orjson.loads(await read(await theatre.chat(request())))
    assert reply["choices"][0]["message"]["content"] == "There is no such tool."
    assert reply["choices"][0]["finish_reason"] == "stop"
    assert theatre.bodies[-1]["tool_choice"] == "none"


@pytest.mark.parametrize("text", [None, "Let me look."])
@pytest.mark.parametrize("stream", [False, True])
async def test_an_end_is_never_made_up(*, stream: bool, text: str | None) -> None:
    """A model that does nothing but search to the last has not answered, and that is an error."""
    make = events if stream else completion
    rounds = [make(None, [search("vvvxx" * at, f"s{at}")], number=at) for at in range(2, 5)]
    theatre = stage(make(text, [search("qqqzz", "s1")]), *rounds)
    if stream and text:
        said = await read(await theatre.chat(request(stream=True)))
        assert b'"stop"' not in said
        assert "searched" in chunks_of(said)[-1]["error"]["message"]
    else:
        with pytest.raises(UpstreamError, match="searched"):
            await read(await theatre.chat(request(stream=stream)))
    assert [row.outcome for row in theatre.ledger.rows] == ["ok", "ok", "ok", "no_answer"]


async def test_a_stream_that_falls_silent_is_booked_as_what_it_was() -> None:
    """The turn's line and the call's row use the word that a forwarded turn has."""
    chunk = (
        b'data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"},'
        b'"finish_reason":null}]}\n\n'
    )

    async def fall_silent() -> AsyncIterator[bytes]:
        yield chunk
        raise UpstreamTimeout("nothing for a minute")

    theatre = stage(Prepared(200, SSE_TYPE, fall_silent()))
    assert b'"upstream_timeout"' in await read(await theatre.chat(request(stream=True)))
    assert [row.outcome for row in theatre.ledger.rows] == ["upstream_timeout"]
    assert [turn.outcome for turn in theatre.ledger.turns] == ["upstream_timeout"]


@pytest.mark.parametrize(("mode", "missed"), [("on", 1), ("off", 0)])
async def test_a_tool_taken_from_the_listing_was_not_foreseen(mode: str, missed: int) -> None:
    """A call without a search is a miss like one after a search, where tools are predicted."""
    settings = SETTINGS.model_copy(
        update={"prediction": Prediction.model_validate({"mode": "on", "mentions": False})}
    )
    alerts = call("weather_alerts", {"region": "x"})
    theatre = stage(completion(None, [alerts]), settings=settings)
    await theatre.chat(request(), headers=[(b"x-usher-predict", mode.encode())])
    turn = theatre.ledger.turns[0]
    assert (turn.hits, turn.missed) == (0, missed)
