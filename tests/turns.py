"""A turn with fakes around it, for tests that look at whole conversations."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

import orjson

from proxy.dispatch import Dispatch
from proxy.draft import Drafter
from proxy.learner import Learner
from proxy.ledger.null import NullLedger
from proxy.ledger.usage import Row, TurnRow
from proxy.observe.metrics import Metrics
from proxy.plan.exchange import ChatRequest, Reply
from proxy.plan.identity import Caller
from proxy.settings import Settings
from proxy.shelf import Shelf
from proxy.state.memory import MemoryStore
from proxy.tools.rank import build_lexical
from proxy.turn import Crew, Turn
from proxy.upstream.transport import Prepared, UpstreamRequest
from proxy.wire import Headers, JSONObject, dump
from tests.fakes.transport import FakeTransport, Outcome
from tests.tools.samples import city_tools

JSON_TYPE: Headers = [(b"content-type", b"application/json")]
SSE_TYPE: Headers = [(b"content-type", b"text/event-stream")]
SETTINGS = Settings.model_validate({
    "upstream": {"base_url": "http://127.0.0.1:1/v1", "retries": 0},
    "deferral": {"min_tools": 1, "small_chars": 0},
    "prediction": {"mode": "off"},
})  # fmt: skip


class ListLedger(NullLedger):
    """Keeps rows in lists."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.turns: list[TurnRow] = []

    def record(self, row: Row) -> None:
        self.rows.append(row)

    def record_turn(self, turn: TurnRow) -> None:
        self.turns.append(turn)


class SilentTransport(FakeTransport):
    """Takes requests and never answers."""

    async def send(self, request: UpstreamRequest) -> Prepared:
        self.sent.append(request)
        await asyncio.sleep(3600)
        raise AssertionError


@dataclass(slots=True)
class Stage:
    """A turn, what it sent upstream, and its books."""

    turn: Turn
    transport: FakeTransport
    drafter: Drafter
    store: MemoryStore
    ledger: ListLedger = field(default_factory=ListLedger)
    metrics: Metrics = field(default_factory=Metrics)

    @property
    def bodies(self) -> list[JSONObject]:
        """The bodies that went upstream."""
        return [orjson.loads(_bytes_of(request)) for request in self.transport.sent]

    async def chat(self, body: bytes | JSONObject, **more: object) -> Reply:
        """One request of the default caller."""
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        headers = more.get("headers", [])
        caller = more.get("caller", Caller())
        assert isinstance(headers, list)
        assert isinstance(caller, Caller)
        return await self.turn.chat(chat_request(raw, headers, caller))


def chat_request(
    raw: bytes, headers: Headers | None = None, caller: Caller | None = None
) -> ChatRequest:
    """A request as the edge hands it over."""
    return ChatRequest("/chat/completions", "", headers or [], raw, caller or Caller(), "req_1")


def _bytes_of(request: UpstreamRequest) -> bytes:
    assert isinstance(request.body, bytes)
    return request.body


def stage(
    *outcomes: Outcome,
    settings: Settings = SETTINGS,
    answer: Callable[[UpstreamRequest], Outcome] | None = None,
    silent: bool = False,
    store: MemoryStore | None = None,
    learner: Learner | None = None,
) -> Stage:
    """A turn whose upstream gives those outcomes in order, or never answers."""
    transport = SilentTransport() if silent else FakeTransport(*outcomes, answer=answer)
    ledger, metrics = ListLedger(), Metrics()
    lessons = learner.lessons if learner else None
    shelf = Shelf(settings.deferral, settings.prediction, build_lexical, 10_000_000, lessons)
    store = store or MemoryStore(1_000_000, 60)
    drafter = Drafter(settings, shelf, store, None, learner)
    dispatch = Dispatch(settings.upstream, {"openai": transport, "standin": transport})
    return Stage(
        Turn(Crew(drafter, dispatch, ledger, metrics)), transport, drafter, store, ledger, metrics
    )


def request(*messages: JSONObject, **fields: object) -> JSONObject:
    """A chat request with six tools."""
    said = list(messages) or [{"role": "user", "content": "hello"}]
    return {"model": "m", "messages": said, "tools": city_tools(), **fields}


def call(name: str, arguments: JSONObject | None = None, call_id: str = "c1") -> JSONObject:
    """A tool call as a message holds it."""
    text = orjson.dumps(arguments or {}).decode()
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def search(query: str, call_id: str = "s1") -> JSONObject:
    """A call of the search tool."""
    return call("tool_search", {"queries": [query]}, call_id)


def completion(
    text: str | None = None,
    calls: Sequence[JSONObject] = (),
    *,
    number: int = 1,
    reason: str | None = None,
) -> Prepared:
    """A reply that is not a stream, as the upstream's call of that number gives it."""
    return Prepared(200, JSON_TYPE, orjson.dumps(_completion(text, calls, number, reason)))


def _completion(
    text: str | None, calls: Sequence[JSONObject], number: int, reason: str | None
) -> JSONObject:
    message: JSONObject = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = list(calls)
    ended = reason or ("tool_calls" if calls else "stop")
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1000 + number,
        "model": "m-2026",
        "choices": [{"index": 0, "message": message, "finish_reason": ended}],
        "usage": {"prompt_tokens": 10, "completion_tokens": number, "total_tokens": 10 + number},
    }


def events(
    text: str | None = None,
    calls: Sequence[JSONObject] = (),
    *,
    number: int = 1,
    pieces: int = 3,
    finished: bool = True,
) -> Prepared:
    """The same as an event stream."""
    return Prepared(200, SSE_TYPE, _play(b"".join(_frames(text, calls, number, finished)), pieces))


async def _play(body: bytes, pieces: int) -> AsyncIterator[bytes]:
    size = max(1, len(body) // pieces)
    for position in range(0, len(body), size):
        yield body[position : position + size]


def _frames(
    text: str | None, calls: Sequence[JSONObject], number: int, finished: bool
) -> list[bytes]:
    deltas: list[JSONObject] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word} for word in (text or "").split("|") if word]
    for index, made in enumerate(calls):
        whole = made["function"]
        opening = {**made, "index": index, "function": {"name": whole["name"], "arguments": ""}}
        deltas += [
            {"tool_calls": [opening]},
            {"tool_calls": [{"index": index, "function": {"arguments": whole["arguments"]}}]},
        ]
    chunks = [_chunk(number, delta) for delta in deltas]
    if not finished:
        return [b"data: " + orjson.dumps(chunk) + b"\n\n" for chunk in chunks]
    last = _chunk(number, {})
    last["choices"][0]["finish_reason"] = "tool_calls" if calls else "stop"
    usage = {**_chunk(number, {}), "choices": []}
    usage["usage"] = {"prompt_tokens": 10, "completion_tokens": number, "total_tokens": 10 + number}
    chunks += [last, usage]
    return [b"data: " + dump(chunk) + b"\n\n" for chunk in chunks] + [b"data: [DONE]\n\n"]


def _chunk(number: int, delta: JSONObject) -> JSONObject:
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion.chunk",
        "created": 1000 + number,
        "model": "m-2026",
        "choices": [{"index": 0, "delta": delta, "finish_reason": None}],
    }


async def read(reply: Reply) -> bytes:
    """The whole body of a reply, as a client reads it."""
    if isinstance(reply.body, bytes):
        return reply.body
    return b"".join([chunk async for chunk in reply.body])


def chunks_of(body: bytes) -> list[JSONObject]:
    """The chunks of an event stream, `[DONE]` left out."""
    datas = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: ")]
    return [orjson.loads(data) for data in datas if data != b"[DONE]"]
