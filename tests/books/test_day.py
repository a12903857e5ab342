"""A day of two thousand turns: the books agree with the upstream's to the last token."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from proxy.dispatch import Dispatch
from proxy.errors import UsherError
from proxy.ledger.priced import make_ledger
from proxy.ledger.prices import Prices
from proxy.ledger.store import Ledger, UsageQuery
from proxy.plan.exchange import ChatRequest, Reply
from proxy.plan.identity import Caller
from proxy.settings import Settings
from proxy.stream.collect import sum_usage
from proxy.turn import Crew, Turn
from proxy.wire import JSONObject
from tests.books.upstream import SCRIPTS, Upstream
from tests.tools.samples import city_tools
from tests.turns import SETTINGS, stage

pytestmark = pytest.mark.anyio

TURNS = 2000
AT_ONCE = 25
MODELS = ("gpt-4o", "gpt-4o-mini", "house-model")


class Day:
    """The gateway, its upstream, and the clients of a day."""

    def __init__(self, ledger: Ledger) -> None:
        self.upstream = Upstream()
        settings = Settings.model_validate(
            SETTINGS.model_dump() | {"upstream": {"base_url": "http://127.0.0.1:1/v1"}}
        )
        theatre = stage(settings=settings, answer=self.upstream.answer)
        dispatch = Dispatch(settings.upstream, {"openai": theatre.transport})
        self.turn = Turn(Crew(theatre.drafter, dispatch, ledger, theatre.metrics))
        self.random = random.Random(7)
        self.seen: dict[int, JSONObject | None] = {}

    async def run(self) -> None:
        """All turns, some at once."""
        for first in range(0, TURNS, AT_ONCE):
            async with asyncio.TaskGroup() as tasks:
                for number in range(first, first + AT_ONCE):
                    tasks.create_task(self.ask(number, self.random.choice(list(SCRIPTS))))

    async def ask(self, number: int, kind: str) -> None:
        """One client's request, to whatever end."""
        stream = kind == "gone" or self.random.random() < 0.5
        body: JSONObject = {
            "model": MODELS[number % len(MODELS)],
            "messages": [{"role": "user", "content": f"{kind} {number}"}],
            "stream": stream,
        }
        if kind != "plain":
            body["tools"] = city_tools()
        if stream:
            body["stream_options"] = {"include_usage": True}
        caller = Caller(key=f"key-{number % 3}", tenant="acme")
        request = ChatRequest("/chat/completions", "", [], orjson.dumps(body), caller, f"r{number}")
        try:
            reply = await self.turn.chat(request)
            self.seen[number] = await read_usage_of(reply, leave=kind == "gone")
        except UsherError:
            assert kind in {"refused", "error"}


async def read_usage_of(reply: Reply, *, leave: bool) -> JSONObject | None:
    """The usage that the client saw; one that leaves sees the first chunk only."""
    if isinstance(reply.body, bytes):
        usage: JSONObject | None = orjson.loads(reply.body).get("usage")
        return usage
    if leave:
        await anext(reply.body)
        await close(reply.body)
        return None
    text = b"".join([chunk async for chunk in reply.body])
    await close(reply.body)
    lines = [line for line in text.split(b"\n") if line.startswith((b"data: {", b"{"))]
    found = [orjson.loads(line.removeprefix(b"data: ")).get("usage") for line in lines]
    return next((usage for usage in reversed(found) if usage), None)


async def close(body: AsyncIterator[bytes]) -> None:
    await body.aclose()  # type: ignore[attr-defined]  # an iterator that closes


@pytest.mark.slow
async def test_the_books_of_a_day(tmp_path: Path) -> None:
    """Searches, repairs, errors, retries, clients that leave: nothing lost, nothing twice."""
    ledger = make_ledger(SETTINGS.ledger, tmp_path, Prices())
    await ledger.start()
    day = Day(ledger)
    await day.run()
    rows = await ledger.usage(UsageQuery(("model", "context")))
    ours = {
        (row["model"], row["context"]): (
            row["calls"],
            row["prompt_tokens"] or 0,
            row["cached_tokens"] or 0,
            row["completion_tokens"] or 0,
        )
        for row in rows
    }
    theirs = {
        key: (totals.calls, totals.prompt, totals.cached, totals.completion)
        for key, totals in day.upstream.log.items()
    }
    assert ours == theirs
    assert {context for _, context in ours} == {"main", "search_round", "repair"}
    assert sum(calls for calls, *_ in ours.values()) > TURNS
    (turns,) = await ledger.savings(UsageQuery(()))
    assert turns["turns"] == TURNS
    await ledger.aclose()
    for number, usages in day.upstream.by_turn.items():
        assert day.seen[number] == sum_usage(usages), number
