"""The memory gate's question to a decision model and to a chat model, with their side recorded.

Recorded from scripted judges beside the stand-in model, never from a vendor: recordings pin what
is asked, how answers are read, and what follows from them. Judgments have a client of their own
which vcrpy cannot see, so it plays where httpx carries everything; elsewhere a socket does.
"""

import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from proxy.memory.offline import OfflineWriter
from proxy.memory.principal import Principal
from proxy.memory.writer import Errand
from proxy.settings import Settings
from proxy.upstream.desk import render_call
from proxy.wire import JSONObject
from tests.fakes.gateway import serve_gateway
from tests.fakes.scripted import Received, Script, ScriptedUpstream, json_reply
from tests.replay.cassettes import CUTS, HOME, Player, make_recorder
from tests.replay.conftest import UPSTREAM_KEY, ask_standin

pytestmark = pytest.mark.anyio

OPTION = re.compile(r"^([A-Z])\. (.*)$", re.MULTILINE)
WISH = "Please remember that I live in Lisbon."
STATEMENT = "My sister lives in Porto."


@dataclass(slots=True)
class Upstream:
    """A chat model that is also a judge and writes memories; keeps what it was asked."""

    asked: list[JSONObject] = field(default_factory=list)

    async def answer(self, received: Received) -> Script:
        """Whatever is asked on the upstream's side."""
        body = orjson.loads(received.body)
        self.asked.append(body)
        if "questions" in body:
            return [json_reply(orjson.dumps(judge(body)))]
        if body.get("logprobs"):
            return [json_reply(orjson.dumps(judge_by_letters(body)))]
        if "set_memory" in str(body.get("tools")):
            return [json_reply(orjson.dumps(await write(body)))]
        return await ask_standin(received)


def wishes(text: str) -> bool:
    """What the judges go by."""
    return '"latest":"Please remember' in text


def judge(body: JSONObject) -> JSONObject:
    """System One's answers."""
    yes = wishes(orjson.dumps(body["state"]).decode())
    answers: JSONObject = {}
    for name, question in body["questions"].items():
        if question["type"] == "noul":
            answers[name] = {
                "type": "noul",
                "noul": 0.93 if yes and name[7:] == "request" else 0.04,
            }
        else:
            shares = {label: 1 / len(question["criteria"]) for label in question["criteria"]}
            answers[name] = {
                "type": "choice",
                "choice": next(iter(shares)),
                "probabilities": shares,
            }
    return {
        "model": "jev-1",
        "answers": answers,
        "usage": {"input_tokens": 321, "output_tokens": 9},
    }


def judge_by_letters(body: JSONObject) -> JSONObject:
    """The log probabilities of one token."""
    text = body["messages"][-1]["content"]
    yes = wishes(text) and "remember, change or forget" in text
    options = OPTION.findall(text)
    likely = next((a for a, said in options if said.startswith("Yes" if yes else "No")), "A")
    rest = 0.08 / max(1, len(options) - 1)
    tokens = [
        {"token": letter, "logprob": math.log(0.9 if letter == likely else rest)}
        for letter, _ in options
    ]
    first = {"token": likely, "logprob": math.log(0.9), "top_logprobs": tokens}
    message = {"role": "assistant", "content": likely}
    choice = {
        "index": 0,
        "message": message,
        "logprobs": {"content": [first]},
        "finish_reason": "stop",
    }
    usage = {"prompt_tokens": 210, "completion_tokens": 1, "total_tokens": 211}
    return {"id": "j", "object": "chat.completion", "choices": [choice], "usage": usage}


async def write(body: JSONObject) -> JSONObject:
    """The memory agent's calls."""
    answer = await OfflineWriter().complete(body, Errand(Principal("t", "u"), "r", "k"))
    message = {**answer.message, "tool_calls": [render_call(call) for call in answer.calls]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return {"id": "w", "object": "chat.completion", "choices": [choice]}


@dataclass(frozen=True, slots=True)
class Gateway:
    """A gateway whose judge is remote."""

    url: str

    async def say(self, text: str) -> httpx.Response:
        """One message of a user."""
        body = {"model": "standin", "messages": [{"role": "user", "content": text}]}
        headers = {"x-usher-user-id": "ali", "authorization": "Bearer sk-caller-secret"}
        async with httpx.AsyncClient(timeout=20) as client:
            return await client.post(f"{self.url}/v1/chat/completions", json=body, headers=headers)


Open = Callable[[JSONObject], Any]


@pytest.fixture(params=["cassette", *CUTS])
def feed(request: pytest.FixtureRequest) -> str:
    """The cassette itself through vcrpy, and its bodies cut every way through a real socket."""
    name: str = request.param
    return name


@pytest.fixture
def transport_name(feed: str) -> str:
    """The one that vcrpy sees everything of, and the usual one."""
    return "httpx" if feed == "cassette" else "aiohttp"


@pytest.fixture
def record(request: pytest.FixtureRequest, feed: str) -> bool:
    """Whether to record anew; that is done once."""
    asked: bool = request.config.getoption("--record-mode") != "none"
    if asked and feed != "cassette":
        pytest.skip("recorded once, through httpx")
    return asked


@pytest.fixture
async def opened(
    transport_name: str, feed: str, cassette: Path, tmp_path: Path, *, record: bool
) -> Callable[[JSONObject], Any]:
    """Opens a gateway with such a judge; every recorded exchange must be used by the end."""

    @asynccontextmanager
    async def open_gateway(classification: JSONObject) -> AsyncIterator[Gateway]:
        async with AsyncExitStack() as stack:
            player = None if feed == "cassette" else Player(cassette, CUTS[feed])
            base = HOME
            if record or player is not None:
                answer: Callable[[Received], Script | Awaitable[Script]]
                answer = Upstream().answer if player is None else player.answer
                upstream = await stack.enter_async_context(ScriptedUpstream(answer=answer))
                base = upstream.url
            settings = make_settings(base, transport_name, classification)
            port = stack.enter_context(serve_gateway(settings, tmp_path))
            played: Any = None
            if player is None:
                recorder = make_recorder(port, record=record)
                played = stack.enter_context(recorder.use_cassette(str(cassette)))
            yield Gateway(f"http://127.0.0.1:{port}")
            if player is not None:
                assert player.unplayed == []
            elif not record:
                assert played.all_played, "recorded exchanges were not used"

    return open_gateway


def make_settings(base: str, transport: str, classification: JSONObject) -> Settings:
    """Memory on, judged as the test says."""
    text = orjson.dumps(classification).decode().replace("BASE", base)
    return Settings.model_validate({
        "upstream": {"base_url": f"{base}/v1", "api_key": UPSTREAM_KEY, "transport": transport},
        "prediction": {"ranker": "lexical"},
        "memory": {"mode": "on", "join_ms": 10_000, "note_ms": 5_000, "agent": {"model": "writer"}},
        "classification": {"enabled": True, "max_retries": 0, **orjson.loads(text)},
        "log": {"level": "error"},
    })  # fmt: skip


async def test_judged_by_a_decision_model(opened: Open) -> None:
    """One System One request decides; the agent runs for the wish and not for the statement."""
    jev = {"preset": "typesafe", "base_url": "BASE/v1/systemone", "api_key": "k"}
    async with opened({"backend": "jev", "providers": {"jev": jev}}) as gateway:
        await check(gateway)


async def test_judged_by_a_chat_model(opened: Open) -> None:
    """A chat model that reports log probabilities is asked letter by letter, to the same end."""
    async with opened({"backend": "chat", "chat": {"model": "small"}}) as gateway:
        await check(gateway)


async def check(gateway: Gateway) -> None:
    """A wish and a statement, as a client sees them."""
    reply = await gateway.say(WISH)
    assert reply.headers["x-usher-memory"] == "pass"
    (told,) = reply.json()["usher"]["memory"]
    assert told["type"] == "update"
    assert "Lisbon" in told["value"]
    reply = await gateway.say(STATEMENT)
    assert reply.headers["x-usher-memory"].startswith("skip")
    assert "memory" not in reply.json().get("usher", {})
