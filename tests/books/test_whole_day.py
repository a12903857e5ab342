"""A day with memory and judgments, through the whole gateway: both sets of books agree."""

import asyncio
import random
from pathlib import Path

import orjson
import pytest

from proxy.app import Gateway, build_gateway
from proxy.ledger.store import UsageQuery
from proxy.settings import Settings
from proxy.upstream.transport import Prepared, UpstreamRequest
from proxy.wire import JSONObject
from tests.books.upstream import SCRIPTS, Totals, Upstream
from tests.edge.driver import ask
from tests.fakes.transport import FakeTransport, Outcome
from tests.replay.test_memory import judge
from tests.tools.samples import city_tools
from tests.turns import JSON_TYPE, SETTINGS, call

pytestmark = pytest.mark.anyio

TURNS = 2000
AT_ONCE = 25
KINDS = tuple(kind for kind in SCRIPTS if kind != "gone")
WISHES = 8
"""One turn in so many asks to remember something."""


class Whole(Upstream):
    """The upstream of a day, which is also the judge and the model that writes memories."""

    def answer(self, sent: UpstreamRequest) -> Outcome:
        assert isinstance(sent.body, bytes)
        body = orjson.loads(sent.body)
        if "questions" in body:
            return self._judge(body)
        if body["model"] == "scribe":
            return self._write(body)
        return super().answer(sent)

    def _judge(self, body: JSONObject) -> Outcome:
        answer = judge(body)
        usage = answer["usage"]
        self._add((body["model"], "classification"), usage["input_tokens"], usage["output_tokens"])
        return Prepared(200, JSON_TYPE, orjson.dumps(answer))

    def _write(self, body: JSONObject) -> Outcome:
        """One memory, then a closing word."""
        message: JSONObject = {"role": "assistant", "content": "Done."}
        if body["messages"][-1]["role"] != "tool":
            number = str(body["messages"]).rpartition("number is ")[2].partition(".")[0]
            value = f"The user's number is {number}."
            made = call("set_memory", {"key": "number", "value": value}, f"w{number}")
            message = {"role": "assistant", "content": None, "tool_calls": [made]}
        prompt = len(str(body))
        self._add(("scribe", "memory"), prompt, 11)
        reply = {
            "id": "w",
            "model": "scribe",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": 11},
        }
        return Prepared(200, JSON_TYPE, orjson.dumps(reply))

    def _add(self, key: tuple[str, str], prompt: int, completion: int) -> None:
        totals = self.log[key]
        totals.calls += 1
        totals.prompt += prompt
        totals.completion += completion


def settings() -> Settings:
    """Everything on, nothing remembered between turns, and no embedded judge asked."""
    place = {"base_url": "http://127.0.0.1:1/v1"}
    return Settings.model_validate({
        "upstream": place,
        "deferral": SETTINGS.deferral.model_dump(),
        "prediction": {"mode": "off"},
        "memory": {"mode": "on", "agent": {"model": "scribe"} | place},
        "classification": {
            "enabled": True,
            "backend": "house",
            "cache_seconds": 0,
            "providers": {"house": {"preset": "systemone", "model": "jev-1"} | place},
        },
        "log": {"level": "error"},
    })  # fmt: skip


async def ask_one(gateway: Gateway, number: int, chance: random.Random) -> None:
    """One user's request."""
    kind, stream = chance.choice(KINDS), chance.random() < 0.5
    wish = number % WISHES == 0
    said = f"Please remember that my number is {number}." if wish else f"{kind} {number}"
    body: JSONObject = {
        "model": "gpt-4o" if number % 2 else "house-model",
        "messages": [{"role": "user", "content": said}],
        "stream": stream,
    }
    if kind != "plain":
        body["tools"] = city_tools()
    headers = [("x-usher-user-id", f"user-{number}"), ("host", "localhost")]
    url = "/v1/chat/completions"
    answered = await ask(gateway.app, "POST", url, orjson.dumps(body), headers)
    assert wish or answered.status == 200 or kind in {"refused", "error"}


@pytest.mark.slow
async def test_the_books_of_a_whole_day(tmp_path: Path) -> None:
    """Gate, memory agent and judge book what they really used, beside main and hidden rounds."""
    upstream = Whole()
    way = FakeTransport(answer=upstream.answer)
    gateway = build_gateway(settings(), tmp_path, {"openai": way, "judge": way, "standin": way})
    chance = random.Random(11)
    async with gateway.app.router.lifespan_context(gateway.app):
        for first in range(0, TURNS, AT_ONCE):
            numbers = range(first, first + AT_ONCE)
            await asyncio.gather(*(ask_one(gateway, number, chance) for number in numbers))
        await gateway.settle(30)
        rows = await gateway.ledger.usage(UsageQuery(("model", "context")))
        (turns,) = await gateway.ledger.savings(UsageQuery(()))
    ours = {(row["model"], row["context"]): totals_of(row) for row in rows}
    assert ours == dict(upstream.log)
    contexts = {context for _, context in ours}
    assert contexts == {"main", "search_round", "repair", "classification", "memory"}
    assert (
        ours["scribe", "memory"].calls > TURNS // WISHES // 2
    )  # turns that fail ask nothing of it
    assert turns["turns"] == TURNS


def totals_of(row: JSONObject) -> Totals:
    """A line of the books as the upstream has it."""
    return Totals(
        row["calls"],
        row["prompt_tokens"] or 0,
        row["cached_tokens"] or 0,
        row["completion_tokens"] or 0,
    )
