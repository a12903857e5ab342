"""What a turn of several rounds used, as the client and as the books hear of it."""

from typing import Any

import orjson
import pytest

from proxy.dispatch import Dispatch
from proxy.errors import ConnectFailed
from proxy.settings import Upstream
from proxy.turn import Crew, Turn
from proxy.upstream.transport import Prepared
from proxy.wire import JSONObject
from tests.edgecases.scene import see, settings, stream
from tests.turns import JSON_TYPE, completion, request, search, stage

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("streams", [False, True], ids=["json", "stream"])
ASK: JSONObject = {"stream": True, "stream_options": {"include_usage": True}}


def _usage(prompt: int, said: int, **details: int) -> JSONObject:
    usage: JSONObject = {
        "prompt_tokens": prompt,
        "completion_tokens": said,
        "total_tokens": prompt + said,
    }
    if details:
        usage["prompt_tokens_details"] = details
    return usage


def _say(usage: JSONObject | None, calls: list[JSONObject] | None, streams: bool) -> Prepared:
    """One round that states that usage."""
    reason = "tool_calls" if calls else "stop"
    message: dict[str, Any] = {"role": "assistant", "content": None if calls else "Done."}
    if calls:
        message["tool_calls"] = [{**made, "index": 0} for made in calls]
    more = {} if usage is None else {"usage": usage}
    if not streams:
        choice: JSONObject = {"index": 0, "message": message, "finish_reason": reason}
        return Prepared(200, JSON_TYPE, orjson.dumps({"id": "x", "choices": [choice], **more}))
    chunks: list[JSONObject] = [
        {"id": "x", "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
    ]
    return stream(*chunks, *([{"id": "x", "choices": [], **more}] if more else []))


async def _turn(usages: list[JSONObject | None], streams: bool) -> tuple[JSONObject | None, Any]:
    """A turn with a round per usage, all but the last one hidden."""
    wishes = ["storm", "forecast", "delete"]
    rounds = [
        _say(usage, [search(wishes[n], f"s{n}")] if n < len(usages) - 1 else None, streams)
        for n, usage in enumerate(usages)
    ]
    theatre = stage(*rounds, settings=settings())
    seen = await see(theatre, request(**(ASK if streams else {})))
    assert seen.text == "Done."
    return seen.usage, theatre.ledger.rows


@both
@pytest.mark.item("accounting/three-rounds")
async def test_three_rounds(streams: bool) -> None:
    """The client hears the sum, the books have a row each."""
    usage, rows = await _turn([_usage(10, 1), _usage(20, 2), _usage(30, 3)], streams)
    assert usage == _usage(60, 6)
    assert [(row.context, row.prompt_tokens) for row in rows] == [
        ("search_round", 10),
        ("search_round", 20),
        ("main", 30),
    ]


@both
@pytest.mark.item("accounting/cached-tokens")
async def test_cached_tokens(streams: bool) -> None:
    """They are summed over the rounds that state them; the others state nothing."""
    told = [_usage(10, 1), _usage(20, 2, cached_tokens=8), _usage(30, 3, cached_tokens=16)]
    usage, rows = await _turn([*told], streams)
    assert usage == _usage(60, 6, cached_tokens=24)
    assert [row.cached_tokens for row in rows] == [None, 8, 16]


@both
@pytest.mark.parametrize("silent", [0, 1])
@pytest.mark.item("accounting/missing-usage")
async def test_a_round_without_usage(silent: int, streams: bool) -> None:
    """It is unknown in the books, never zero; the client hears what was stated."""
    usages: list[JSONObject | None] = [_usage(10, 1), _usage(20, 2)]
    told = usages[1 - silent]
    usages[silent] = None
    usage, rows = await _turn(usages, streams)
    assert usage == told
    assert rows[silent].prompt_tokens is None
    assert rows[1 - silent].prompt_tokens is not None


@pytest.mark.parametrize("failures", [1, 2])
@pytest.mark.item("accounting/retries")
async def test_retries(failures: int) -> None:
    """A connection that was tried again is one call, with one row and one count of tokens."""
    refused = [ConnectFailed("refused") for _ in range(failures)]
    theatre = stage(*refused, completion("Hi"), settings=settings())
    patient = Upstream(base_url="http://127.0.0.1:1/v1", retries=2)
    dispatch = Dispatch(patient, {"openai": theatre.transport})
    crew = Crew(theatre.drafter, dispatch, theatre.ledger, theatre.metrics)
    theatre.turn = Turn(crew)
    assert (await see(theatre, request())).text == "Hi"
    assert len(theatre.transport.sent) == failures + 1
    assert [(row.outcome, row.prompt_tokens) for row in theatre.ledger.rows] == [("ok", 10)]


@pytest.mark.item("accounting/aborted")
async def test_a_refused_round() -> None:
    """Both calls are in the books, the second one with what became of it."""
    refusal = Prepared(500, JSON_TYPE, b'{"error":{"message":"boom"}}')
    theatre = stage(completion(None, [search("storm")]), refusal, settings=settings())
    reply = await theatre.chat(request())
    assert reply.status == 500
    rows = [(row.context, row.outcome, row.prompt_tokens) for row in theatre.ledger.rows]
    assert rows == [("search_round", "ok", 10), ("main", "http_500", None)]
