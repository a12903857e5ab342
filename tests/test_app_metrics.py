"""What a whole gateway's metrics say about its judges, caches and memory."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from proxy.app import Gateway, build_gateway
from proxy.settings import Settings
from proxy.upstream.transport import Prepared
from proxy.wire import JSON, JSONObject
from tests.edge.driver import CHAT, ask
from tests.fakes.transport import FakeTransport
from tests.judge.fakes import JUDGED, URL, reply
from tests.turns import completion, request

pytestmark = pytest.mark.anyio

_HEADERS = [("content-type", "application/json")]


def _settings(provider: str = "one", **sections: JSON) -> Settings:
    classification = {
        "enabled": True,
        "max_retries": 0,
        "breaker_failures": 2,
        "breaker_seconds": 0.05,
        "cache_seconds": 60,
        "providers": {provider: {"base_url": URL, "api_key": "k", "model": "jev-latest"}},
    }
    return Settings.model_validate({
        "upstream": {"base_url": "http://up.test/v1", "retries": 0},
        "deferral": {"min_tools": 1, "small_chars": 0},
        "prediction": {"ranker": "lexical"},
        "ledger": {"enabled": False},
        "classification": classification,
        **sections,
    })  # fmt: skip


class Rig:
    """A gateway in front of a model that may be `broken` and a judge that may be `down`."""

    def __init__(self, folder: Path, settings: Settings | None = None) -> None:
        self.down = self.broken = False
        self.asked = 0
        transport = FakeTransport(answer=lambda sent: self._answer(sent.url))
        self.gateway: Gateway = build_gateway(
            settings or _settings(), folder, {"openai": transport}
        )

    def _answer(self, url: str) -> Prepared:
        if url != URL:
            return reply({}, 503) if self.broken else completion("Hi")
        return reply({}, 500) if self.down else reply(JUDGED)

    async def judge(self, subject: str | None = None) -> int:
        """Have something judged that was not judged before, unless it is named."""
        self.asked += 1
        question: JSONObject = {"type": "noul", "instructions": "Is it spam?"}
        body = {
            "model": "jev-latest",
            "state": subject or f"mail {self.asked}",
            "questions": {"spam": question},
        }
        app = self.gateway.app
        return (await ask(app, "POST", "/v1/systemone", orjson.dumps(body), _HEADERS)).status

    def value(self, name: str, **labels: str) -> float | None:
        """A number as a scrape shows it."""
        return self.gateway.metrics.registry.get_sample_value(name, labels)

    def judged(self, outcome: str) -> float | None:
        """How many attempts of the first judge ended so."""
        return self.value("usher_judgments_total", provider="one", outcome=outcome)

    def is_open(self, backend: str = "one") -> float | None:
        """Whether that judge is left alone; None when there is none of that name."""
        return self.value("usher_judge_breaker_open", backend=backend)


async def test_judgments_count_whether_they_succeed_or_not(tmp_path: Path) -> None:
    """Answers, answers from memory, failures, and those that were not asked for at all."""
    rig = Rig(tmp_path)
    assert await rig.judge("mail") == 200
    assert await rig.judge("mail") == 200
    assert (rig.judged("ok"), rig.judged("cache_hit")) == (1, 1)
    rig.down = True
    for _ in range(3):
        assert await rig.judge() != 200
    assert (rig.judged("server_error"), rig.judged("breaker_open")) == (2, 1)
    assert rig.judged("ok") == 1


async def test_a_breaker_opens_and_closes(tmp_path: Path) -> None:
    """A probe that fails leaves it open, one that is answered closes it."""
    rig = Rig(tmp_path)
    assert rig.is_open() == 0
    rig.down = True
    await rig.judge()
    assert rig.is_open() == 0
    await rig.judge()
    assert rig.is_open() == 1
    await _asked_again(rig, lambda: rig.judged("server_error") == 3)
    assert rig.is_open() == 1
    rig.down = False
    await _asked_again(rig, lambda: rig.judged("ok") == 1)
    assert rig.is_open() == 0


async def _asked_again(rig: Rig, happened: Callable[[], bool]) -> None:
    """Ask until a probe was let through."""
    for _ in range(100):
        await rig.judge()
        if happened():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("no probe was let through")


async def test_other_judges_after_a_reload(tmp_path: Path) -> None:
    """Those of before are gone; the same one again has another chance."""
    rig = Rig(tmp_path)
    rig.down = True
    await rig.judge()
    await rig.judge()
    assert rig.is_open() == 1
    await rig.gateway.reload(_settings())
    assert rig.is_open() == 0
    await rig.judge()
    await rig.judge()
    assert rig.is_open() == 1
    await rig.gateway.reload(_settings("two"))
    assert rig.is_open() is None
    assert rig.is_open("two") == 0


async def test_caches_show_their_bytes(tmp_path: Path) -> None:
    """Where a new catalogue makes an old one leave, they grow no more."""
    rig = Rig(tmp_path)
    bytes_of = "usher_cache_bytes"
    assert rig.value(bytes_of, cache="catalogues") == 0
    body = orjson.dumps(request())
    assert (await ask(rig.gateway.app, "POST", CHAT, body, _HEADERS)).status == 200
    one = rig.value(bytes_of, cache="catalogues")
    assert one is not None
    assert one > 1_000
    assert rig.value(bytes_of, cache="state") == 0
    await rig.gateway.reload(_settings(caches={"catalogue_bytes": int(one * 1.5)}))
    assert rig.value(bytes_of, cache="catalogues") == 0
    for number in range(4):
        tools = request()["tools"]
        tools[0]["function"]["description"] += f" Number {number}."
        body = orjson.dumps({**request(), "tools": tools})
        assert (await ask(rig.gateway.app, "POST", CHAT, body, _HEADERS)).status == 200
        assert rig.value(bytes_of, cache="catalogues") == pytest.approx(one, rel=0.1)


async def test_memory_runs_count_whether_they_succeed_or_not(tmp_path: Path) -> None:
    """Also across a reload, which makes a new memory agent."""
    memory: JSON = {"mode": "on", "join_ms": 0}
    off: JSON = {"enabled": False}
    settings = _settings(memory=memory, classification=off)
    rig = Rig(tmp_path, settings)
    metrics = "usher_memory_runs_total"
    async with rig.gateway.app.router.lifespan_context(rig.gateway.app):
        await _remember(rig, "Remember that I live in Rome.")
        assert rig.value(metrics, outcome="nothing") == 1
        await rig.gateway.reload(settings)
        rig.broken = True
        await _remember(rig, "Remember that I have a dog.")
        assert rig.value(metrics, outcome="failed") == 1
        assert rig.value(metrics, outcome="nothing") == 1


async def _remember(rig: Rig, text: str) -> None:
    """Say it, and wait until nothing runs behind the answer."""
    body = orjson.dumps({"model": "m", "messages": [{"role": "user", "content": text}]})
    headers = [*_HEADERS, ("x-usher-user-id", "ali")]
    await ask(rig.gateway.app, "POST", CHAT, body, headers)
    await rig.gateway.settle(5)
