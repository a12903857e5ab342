"""Odd streams: how they end, how they are framed, and what else than text is in them."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import pytest

from proxy.errors import StreamTruncated, UpstreamError
from proxy.stream.sse import PING
from proxy.upstream.transport import Prepared
from proxy.wire import JSONObject
from tests.edgecases.scene import Seen, play, see, settings, stream
from tests.fakes.until import until
from tests.turns import SSE_TYPE, Stage, chunks_of, events, request, search, stage

pytestmark = pytest.mark.anyio

ASK: JSONObject = {"stream": True, "stream_options": {"include_usage": True}}


async def _cut(body: bytes, size: int) -> AsyncIterator[bytes]:
    for position in range(0, len(body), size):
        yield body[position : position + size]


async def _bytes(reply: Prepared) -> bytes:
    return b"".join([chunk async for chunk in reply.chunks()])


async def _rewritten(change: Callable[[bytes], bytes], size: int = 1_000_000) -> Seen:
    """A turn with a hidden round, both of whose streams were written differently."""
    rounds = events("Süß: |🍕.", [search("storm")]), events("Ruhig.", number=2)
    bodies = [change(await _bytes(one)) for one in rounds]
    replies = [Prepared(200, SSE_TYPE, _cut(body, size)) for body in bodies]
    theatre = stage(*replies, settings=settings())
    seen = await see(theatre, request(**ASK))
    assert seen.usage == {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23}
    assert seen.raw.count(b"data: [DONE]\n\n") == 1
    return seen


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda body: body.replace(b"\n", b"\r\n"),
            marks=pytest.mark.item("stream/crlf"),
            id="crlf",
        ),
        pytest.param(
            lambda body: body.replace(b"data: {", b": busy\n\nid: 7\nretry: 5\ndata: {"),
            marks=pytest.mark.item("stream/comments", "stream/keep-alive"),
            id="comments",
        ),
        pytest.param(
            lambda body: body.replace(b',"choices"', b',\ndata: "choices"'),
            marks=pytest.mark.item("stream/multi-line-data"),
            id="lines",
        ),
        pytest.param(
            lambda body: b"\xef\xbb\xbf" + body,
            marks=pytest.mark.item("stream/byte-order-mark"),
            id="mark",
        ),
        pytest.param(
            lambda body: body.replace(b"data: [DONE]\n\n", b""),
            marks=pytest.mark.item("stream/no-done"),
            id="no-done",
        ),
    ],
)
async def test_framings(change: Callable[[bytes], bytes]) -> None:
    """However both rounds are framed, the client reads the one tidy stream."""
    seen = await _rewritten(change)
    assert (seen.text, seen.calls, seen.reason) == ("Süß: 🍕.\n\nRuhig.", [], "stop")
    assert not {line.strip()[:1] for line in seen.raw.split(b"\n")} - {b"d", b""}


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.item("stream/split-utf8")
async def test_reads_between_the_bytes_of_a_character(size: int) -> None:
    """An umlaut and an emoji arrive whole."""
    seen = await _rewritten(lambda body: body, size)
    assert seen.text == "Süß: 🍕.\n\nRuhig."


@pytest.mark.parametrize("hidden", [0, 1])
@pytest.mark.item("stream/cut-after-headers")
async def test_nothing_after_the_headers(hidden: int) -> None:
    """While the client saw nothing it is a plain error, in whichever round."""
    rounds = [events(None, [search("storm")])] * hidden
    theatre = stage(*rounds, Prepared(200, SSE_TYPE, b""), settings=settings())
    with pytest.raises(StreamTruncated):
        await see(theatre, request(stream=True))
    assert theatre.ledger.rows[-1].outcome == "stream_truncated"


@pytest.mark.parametrize("text", [None, "Look:"])
@pytest.mark.item("stream/cut-in-hidden-round")
async def test_a_hidden_round_that_breaks_off(text: str | None) -> None:
    """Half a search is never run: an error, in the stream if the client saw text."""
    theatre = stage(events(text, [search("storm")], finished=False), settings=settings())
    if text is None:
        with pytest.raises(StreamTruncated):
            await see(theatre, request(stream=True))
    else:
        seen = await see(theatre, request(stream=True))
        assert (seen.text, seen.reason) == ("Look:", None)
        assert b'"code":"stream_truncated"' in seen.raw
    assert len(theatre.bodies) == 1
    assert theatre.ledger.rows[0].outcome == "stream_truncated"


@pytest.mark.item("stream/cut-after-visible")
async def test_a_visible_round_that_breaks_off() -> None:
    """What was said stays, the error follows, and no reason to finish is made up."""
    last = events("Half", number=2, finished=False)
    theatre = stage(events("Look:", [search("storm")]), last, settings=settings())
    seen = await see(theatre, request(stream=True))
    assert (seen.text, seen.reason) == ("Look:\n\nHalf", None)
    assert b'"code":"stream_truncated"' in seen.raw
    assert [row.outcome for row in theatre.ledger.rows] == ["ok", "stream_truncated"]


async def _endless(body: bytes) -> AsyncIterator[bytes]:
    yield body
    await asyncio.sleep(3600)


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.item("stream/never-closes", "reported/waits-for-end")
async def test_an_upstream_that_never_closes(done: bool) -> None:
    """`[DONE]` ends it at once; behind a finish reason, usage has two seconds to come."""
    bodies = [await _bytes(events(None, [search("storm")])), await _bytes(events("Calm."))]
    if not done:
        bodies[1] = bodies[1].replace(b"data: [DONE]\n\n", b"")
    replies = [Prepared(200, SSE_TYPE, _endless(body)) for body in bodies]
    began = time.perf_counter()
    seen = await see(stage(*replies, settings=settings()), request(stream=True))
    assert (seen.text, seen.reason) == ("Calm.", "stop")
    assert time.perf_counter() - began < (1.5 if done else 4)


def _chunk(usage: JSONObject | None, reason: str | None, **delta: object) -> JSONObject:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    chunk: JSONObject = {"id": "x", "choices": [choice]}
    return chunk if usage is None else {**chunk, "usage": usage}


@pytest.mark.item("stream/no-usage")
async def test_no_usage() -> None:
    """It stays unknown, to the client and in the books, however loudly it was asked for."""
    said = stream(_chunk(None, None, role="assistant", content="Hi"), _chunk(None, "stop"))
    theatre = stage(said, settings=settings())
    seen = await see(theatre, request(**ASK))
    assert seen.usage is None
    assert (theatre.ledger.rows[0].prompt_tokens, theatre.ledger.rows[0].outcome) == (None, "ok")


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.item("stream/usage-in-finish", "stream/include-usage")
async def test_usage_in_the_finish_chunk(asked: bool) -> None:
    """It is summed, and reaches the client as a chunk of its own if it asked."""
    usage = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
    last = stream(_chunk(None, None, role="assistant", content="Hi"), _chunk(usage, "stop"))
    theatre = stage(events(None, [search("storm")]), last, settings=settings())
    seen = await see(theatre, request(**(ASK if asked else {"stream": True})))
    total = {"prompt_tokens": 15, "completion_tokens": 2, "total_tokens": 17}
    assert seen.usage == (total if asked else None)
    assert (b'"usage"' in seen.raw) is asked
    assert all(body["stream_options"]["include_usage"] for body in theatre.bodies)


class _Silent(Prepared):
    """An answer that begins and then says nothing."""

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b'data: {"id":"x","choices":[{"index":0,"delta":{"role":"assistant"}}]}\n\n'
        await asyncio.sleep(3600)


@pytest.mark.item("stream/disconnect", "accounting/aborted")
async def test_a_client_that_leaves_in_a_hidden_round() -> None:
    """The round before it and the one that was under way are both in the books."""
    silent = _Silent(200, SSE_TYPE, b"")
    theatre = stage(events("Look:", [search("storm")]), silent, settings=settings())
    reply = await theatre.chat(request(stream=True))
    body = reply.body
    assert not isinstance(body, bytes)

    async def listen() -> None:
        async for _ in body:
            pass

    task = asyncio.get_running_loop().create_task(listen())
    await until(lambda: len(theatre.transport.sent) == 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await body.aclose()  # type: ignore[attr-defined]  # an iterator that closes
    assert [row.outcome for row in theatre.ledger.rows] == ["ok", "client_gone"]
    assert [turn.outcome for turn in theatre.ledger.turns] == ["client_gone"]


@pytest.mark.item("stream/keep-alive")
async def test_keep_alive_lines_are_no_events() -> None:
    """A stream of ours may get them; a comment is no event, even for a strict parser."""
    theatre = stage(events("Hi"), settings=settings())
    reply = await theatre.chat(request(stream=True))
    assert reply.pings
    assert PING.startswith(b":")
    assert b"\n\n" not in PING


def _failing(*chunks: JSONObject) -> Prepared:
    return stream(*chunks, {"error": {"message": "overloaded", "code": "busy"}}, end=b"")


@pytest.mark.parametrize("text", ["", "Look:"])
@pytest.mark.item("stream/error-mid-stream")
async def test_an_error_in_the_middle(text: str) -> None:
    """It is the upstream's word, verbatim, also in a hidden round; the search is not run."""
    piece = {**search("storm"), "index": 0}
    said = _chunk(None, None, role="assistant", content=text, tool_calls=[piece])
    theatre = stage(_failing(said), settings=settings())
    seen = await see(theatre, request(stream=True))
    assert chunks_of(seen.raw)[-1] == {"error": {"message": "overloaded", "code": "busy"}}
    assert (seen.text, seen.calls, seen.reason) == (text, [], None)
    assert b"tool_search" not in seen.raw
    assert len(theatre.bodies) == 1
    assert theatre.ledger.rows[0].outcome == "upstream_error"


@pytest.mark.item("stream/error-mid-stream")
async def test_a_refused_hidden_round_names_the_upstreams_error() -> None:
    """Behind visible text the error stands in the stream, before it the status is the error's."""
    for text in (None, "Look:"):
        refusal = Prepared(529, [], b'{"error":{"message":"overloaded","type":"busy"}}')
        theatre = stage(events(text, [search("storm")]), refusal, settings=settings())
        if text is None:
            with pytest.raises(UpstreamError, match="overloaded"):
                await see(theatre, request(stream=True))
        else:
            assert b'"message":"overloaded"' in (await see(theatre, request(stream=True))).raw


def _deltas(seen: Seen) -> list[JSONObject]:
    return [choice["delta"] for chunk in chunks_of(seen.raw) for choice in chunk["choices"]]


@pytest.mark.item("stream/repeated-role")
async def test_a_role_on_every_chunk() -> None:
    """The client reads it once, over all rounds."""
    rounds = [
        play({"role": "assistant", "content": "Look."}, {"role": "assistant", "tool_calls": made})
        for made in ([{**search("storm"), "index": 0}], [])
    ]
    seen = await see(stage(*rounds, settings=settings()), request(stream=True))
    assert seen.text == "Look.\n\nLook."
    assert sum("role" in delta for delta in _deltas(seen)) == 1


@pytest.mark.item("stream/refusal")
async def test_a_refusal() -> None:
    """It passes, behind a hidden round as well."""
    no = play({"role": "assistant", "refusal": "I can"}, {"refusal": "not."}, reason="stop")
    theatre = stage(events(None, [search("storm")]), no, settings=settings())
    seen = await see(theatre, request(stream=True))
    assert "".join(delta.get("refusal") or "" for delta in _deltas(seen)) == "I cannot."
    assert seen.reason == "stop"


@pytest.mark.item("stream/reasoning-content")
async def test_reasoning_of_a_hidden_round() -> None:
    """The client reads it live, and the next round gets it back as it was."""
    piece = {**search("storm"), "index": 0}
    thought: JSONObject = {"role": "assistant", "reasoning_content": "Hm, "}
    first = play(thought, {"reasoning_content": "weather."}, {"tool_calls": [piece]})
    theatre = stage(first, events("Calm.", number=2), settings=settings())
    seen = await see(theatre, request(stream=True))
    assert "".join(d.get("reasoning_content") or "" for d in _deltas(seen)) == "Hm, weather."
    assert theatre.bodies[1]["messages"][-2]["reasoning_content"] == "Hm, weather."


async def _limited(first: Prepared, *more: Prepared) -> tuple[Seen, Stage]:
    theatre = stage(first, *more, settings=settings())
    return await see(theatre, request(stream=True)), theatre


@pytest.mark.parametrize("reason", ["length", "content_filter"])
@pytest.mark.item("stream/length-in-hidden-round")
async def test_a_hidden_round_that_is_cut(reason: str) -> None:
    """Half a search is dropped and the answer ends for that reason, as it would without Usher."""
    half = {"index": 0, "id": "s", "function": {"name": "tool_search", "arguments": '{"que'}}
    said = play({"role": "assistant", "content": "Look"}, {"tool_calls": [half]}, reason=reason)
    seen, theatre = await _limited(said)
    assert (seen.text, seen.calls, seen.reason) == ("Look", [], reason)
    assert len(theatre.bodies) == 1
    last = play({"role": "assistant", "content": "Ca"}, reason=reason)
    seen, theatre = await _limited(events(None, [search("storm")]), last)
    assert (seen.text, seen.reason) == ("Ca", reason)


@pytest.mark.item("stream/comments")
async def test_nothing_but_comments() -> None:
    """A provider that only says that it is busy has not answered."""
    theatre = stage(Prepared(200, SSE_TYPE, b": busy\n\n: busy\n\n"), settings=settings())
    with pytest.raises(StreamTruncated):
        await see(theatre, request(stream=True))
    assert [row.outcome for row in theatre.ledger.rows] == ["stream_truncated"]
