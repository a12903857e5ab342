"""What a whole gateway's chat replies say about their judgments and memory."""

from pathlib import Path

import orjson
import pytest

from proxy.app import build_gateway
from proxy.settings import Settings
from proxy.upstream.transport import Prepared, UpstreamRequest
from proxy.wire import JSON
from tests.edge.driver import CHAT, ask
from tests.fakes.transport import FakeTransport
from tests.judge.fakes import JUDGED, URL, reply
from tests.turns import completion, request

pytestmark = pytest.mark.anyio

_HEADERS = [("content-type", "application/json"), ("x-request-id", "r1")]


def _settings(**sections: JSON) -> Settings:
    return Settings.model_validate({
        "upstream": {"base_url": "http://up.test/v1", "retries": 0},
        "deferral": {"min_tools": 1, "small_chars": 0},
        "prediction": {"ranker": "lexical"},
        "classification": {
            "enabled": True,
            "providers": {"one": {"base_url": URL, "api_key": "k", "model": "jev-latest"}},
            "tool_selection": {"enabled": True, "timeout_ms": 2_000},
            "memory_gate": {"enabled": False},
        },
        **sections,
    })  # fmt: skip


def _answer(sent: UpstreamRequest) -> Prepared:
    return reply(JUDGED) if sent.url == URL else completion("Hi")


async def test_a_reply_says_what_its_judgments_used(tmp_path: Path) -> None:
    """Apart from the model's usage, which stays as it was; without a judge there is no header."""
    transport = FakeTransport(answer=_answer)
    gateway = build_gateway(_settings(), tmp_path / "a", {"openai": transport})
    answered = await ask(gateway.app, "POST", CHAT, orjson.dumps(request()), _HEADERS)
    assert answered.status == 200
    assert answered.headers["x-usher-classification"] == "tokens=1140;cost=0.000047880"
    explained = [*_HEADERS, ("x-usher-explain", "1")]
    answered = await ask(
        gateway.app,
        "POST",
        CHAT,
        orjson.dumps(request({"role": "user", "content": "again"})),
        explained,
    )
    told = orjson.loads(answered.body)["usher"]
    assert told["classification"] == {"tokens": 1140, "cost_nano_usd": 47_880}
    assert (told["memory_gate"], told["triage"]) == (None, None)
    bare = _settings(classification={"enabled": False})
    gateway = build_gateway(bare, tmp_path / "b", {"openai": transport})
    answered = await ask(gateway.app, "POST", CHAT, orjson.dumps(request()), _HEADERS)
    assert "x-usher-classification" not in answered.headers


async def test_memory_tells_of_a_turn_by_the_id_that_its_client_saw(tmp_path: Path) -> None:
    """An upstream that has ids of its own has the last word on the reply's header."""

    def answer(_: UpstreamRequest) -> Prepared:
        answered = completion("Hi")
        answered.headers = [*answered.headers, (b"x-request-id", b"up_1")]
        return answered

    settings = _settings(
        classification={"backend": "embedded"},
        memory={"mode": "on", "join_ms": 2_000},
        ledger={"enabled": True, "flush_ms": 10},
    )
    gateway = build_gateway(settings, tmp_path, {"openai": FakeTransport(answer=answer)})
    user = [*_HEADERS, ("x-usher-user-id", "ali")]
    said = {"model": "m", "messages": [{"role": "user", "content": "Remember that I like tea."}]}
    async with gateway.app.router.lifespan_context(gateway.app):
        answered = await ask(gateway.app, "POST", CHAT, orjson.dumps(said), user)
        assert answered.headers["x-request-id"] == "up_1"
        for request_id, status in (("up_1", 200), ("r1", 200), ("up_2", 404)):
            path = f"/usher/memory/explain?request_id={request_id}"
            assert (await ask(gateway.app, "GET", path, None, user)).status == status
