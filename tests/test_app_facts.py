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
    bare = _settings(classification={"enabled": False})
    gateway = build_gateway(bare, tmp_path / "b", {"openai": transport})
    answered = await ask(gateway.app, "POST", CHAT, orjson.dumps(request()), _HEADERS)
    assert "x-usher-classification" not in answered.headers
