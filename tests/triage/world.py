"""A gateway with triage, and everything outside it as fakes on one transport."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from proxy.app import Gateway, build_gateway
from proxy.errors import ConnectFailed
from proxy.ledger.priced import Listeners
from proxy.ledger.usage import Row
from proxy.plan.exchange import Reply
from proxy.settings import Settings
from proxy.upstream.transport import Prepared, UpstreamRequest
from proxy.wire import JSON, Headers, JSONObject
from tests.fakes.transport import FakeTransport
from tests.triage.talk import said
from tests.triage.talk import sign as sign_prefix
from tests.turns import JSON_TYPE, SSE_TYPE, chat_request, read

Judge = Callable[[str, str], tuple[str, float]]
"""From a unit's name and text to an action and how probable it is."""


@dataclass(slots=True)
class World:
    """Everything outside the gateway."""

    judge: Judge
    used: int | None = 1183
    note: str | None = "Short note."
    replies: list[JSONObject] = field(default_factory=list)
    judge_fails: bool = False
    signs: bool = False
    headers: Headers = field(default_factory=list)
    main: list[JSONObject] = field(default_factory=list)
    judged: list[JSONObject] = field(default_factory=list)
    written: list[JSONObject] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def answer(self, request: UpstreamRequest) -> Prepared | ConnectFailed:
        assert isinstance(request.body, bytes)
        body = orjson.loads(request.body)
        if "decide" in request.url:
            self.judged.append(body)
            return ConnectFailed("judge down") if self.judge_fails else self._judge(body)
        if "write" in request.url:
            self.written.append(body)
            message = said(self.note or "")
            return Prepared(200, JSON_TYPE, _completion(message, 90))
        self.main.append(body)
        self.raw.append(request.body)
        return self._reply(body)

    def _judge(self, body: JSONObject) -> Prepared:
        answers: JSONObject = {}
        for name in body["questions"]:
            action, p = self.judge(name, body["state"][name])
            rest = {a: (1 - p) / 2 for a in ("keep", "compress", "drop") if a != action}
            answers[name] = {
                "type": "choice", "choice": action, "confidence": p,
                "probabilities": {action: p, **rest},
            }  # fmt: skip
        usage = {"input_tokens": 100, "output_tokens": 1}
        reply = {"model": "jev-1", "answers": answers, "usage": usage}
        return Prepared(200, JSON_TYPE, orjson.dumps(reply))

    def _reply(self, body: JSONObject) -> Prepared:
        message = self.replies.pop(0) if self.replies else said(f"Answer {len(self.main)}.")
        if self.signs:
            blocks = [{"type": "thinking", "signature": sign_prefix(body["messages"])}]
            message = {**message, "thinking_blocks": blocks}
        if body.get("stream"):
            return Prepared(200, SSE_TYPE, _stream(message, self.used, body))
        return Prepared(200, [*JSON_TYPE, *self.headers], _completion(message, self.used))


def _completion(message: JSONObject, used: int | None) -> bytes:
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    reply: JSONObject = {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
    }  # fmt: skip
    if used is not None:
        reply["usage"] = {"prompt_tokens": used, "completion_tokens": 5, "total_tokens": used + 5}
    return orjson.dumps(reply)


def _stream(message: JSONObject, used: int | None, body: JSONObject) -> bytes:
    def chunk(choices: JSON, **more: JSON) -> bytes:
        return b"data: " + orjson.dumps({"id": "c", "choices": choices, **more}) + b"\n\n"

    out = chunk([{"index": 0, "delta": message, "finish_reason": None}])
    out += chunk([{"index": 0, "delta": {}, "finish_reason": "stop"}])
    if (body.get("stream_options") or {}).get("include_usage"):
        out += chunk([], usage={"prompt_tokens": used, "completion_tokens": 5})
    return out + b"data: [DONE]\n\n"


def small_talk(_: str, text: str) -> tuple[str, float]:
    """The seed's judge: what it said about the live run's turns."""
    if "1 + 1" in text:
        return "drop", 0.955
    return ("drop", 0.73) if "Hi" in text else ("keep", 0.9)


def make(world: World, data: Path, **triage: JSON) -> Gateway:
    settings = Settings.model_validate({
        "upstream": {"base_url": "http://127.0.0.1:1/v1", "retries": 0},
        "ledger": {"enabled": False},
        "prediction": {"ranker": "lexical"},
        "classification": {
            "enabled": True,
            "max_retries": 0,
            "providers": {"own": {"base_url": "http://127.0.0.1:1/decide", "model": "jev-1"}},
        },
        "triage": {
            "mode": "on",
            "budget_tokens": 500,
            "protect": {"turns": 1, "steps": 1, "first": False},
            "cost": {"min_reclaim": 0, "expected_calls": 100},
            "writer": {"base_url": "http://127.0.0.1:1/write", "model": "small"},
            **triage,
        },
    })  # fmt: skip
    way = FakeTransport(answer=world.answer)
    return build_gateway(settings, data, {"openai": way}, Listeners(calls=(world.rows.append,)))


async def chat(
    gateway: Gateway, messages: Sequence[JSONObject], headers: Headers | None = None, **body: JSON
) -> tuple[Reply, bytes]:
    """One request; decisions beside it are made before this returns."""
    raw = orjson.dumps({"model": "m", "messages": messages, **body})
    reply = await gateway.turn.chat(chat_request(raw, headers))
    answer = await read(reply)
    await gateway.settle(5)
    return reply, answer


def header(reply: Reply, name: bytes = b"x-usher-triage") -> str:
    return dict(reply.headers).get(name, b"").decode()
