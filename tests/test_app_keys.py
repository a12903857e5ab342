"""Keys, limits and budgets as a client meets them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import orjson
import pytest

from proxy.app import Gateway, build_gateway
from proxy.errors import ConfigError
from proxy.keys.issue import new_key, revoke_key
from proxy.keys.key import GatewayKey, KeyPolicy, Limits
from proxy.keys.keyfile import key_path
from proxy.lasting import open_ring
from proxy.settings import Settings, State
from proxy.upstream.transport import Prepared
from proxy.wire import JSONObject
from tests.edge.driver import CHAT, Answered, ask
from tests.fakes.transport import FakeTransport
from tests.turns import JSON_TYPE, SSE_TYPE, completion, request

pytestmark = pytest.mark.anyio

_TREE: JSONObject = {
    "upstream": {"base_url": "http://up.test/v1", "api_key": "upstream", "retries": 0},
    "deferral": {"min_tools": 1, "small_chars": 0},
    "prediction": {"mode": "off"},
    "ledger": {"enabled": False},
}
_SMALL = b'{"model":"small","messages":[]}'


def _make(folder: Path, name: str = "alice", **fields: object) -> str:
    def wanted(key: GatewayKey) -> GatewayKey:
        return msgspec.structs.replace(key, **fields)

    return new_key(key_path(None, folder), wanted, name)


def _gateway(folder: Path, *outcomes: Prepared) -> tuple[Gateway, FakeTransport]:
    transport = FakeTransport(*outcomes, answer=None if outcomes else lambda _: completion("Hi"))
    settings = Settings.model_validate(_TREE)
    return build_gateway(settings, folder, {"openai": transport}), transport


async def _ask(
    gateway: Gateway, secret: str | None, body: bytes = _SMALL, url: str = CHAT
) -> Answered:
    headers = [("authorization", f"Bearer {secret}")] if secret else []
    headers.append(("content-type", "application/json"))
    return await ask(gateway.app, "POST", url, body, headers)


def _error(answered: Answered) -> JSONObject:
    error: JSONObject = orjson.loads(answered.body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error


async def test_with_keys_nobody_enters_without_one(tmp_path: Path) -> None:
    """A missing, wrong or revoked key is a 401; a good one goes in and never goes up."""
    secret = _make(tmp_path)
    gateway, transport = _gateway(tmp_path)
    for wrong in (None, "sk-other", secret[:-1]):
        answered = await _ask(gateway, wrong)
        assert answered.status == 401
        assert _error(answered)["code"] == "invalid_api_key"
    assert (await _ask(gateway, secret)).status == 200
    assert (b"authorization", b"Bearer upstream") in transport.sent[0].headers
    assert secret.encode() not in b"".join(v for _, v in transport.sent[0].headers)


async def test_a_revoked_key_ends_at_the_next_request(tmp_path: Path) -> None:
    """A running stream outlives its key, a new request does not."""
    secret, spare = _make(tmp_path), _make(tmp_path, "bob")
    held = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b'data: {"choices":[]}\n\n'
        await held.wait()
        yield b"data: [DONE]\n\n"

    gateway, _ = _gateway(tmp_path, Prepared(200, SSE_TYPE, slow()), completion("Hi"))
    running = asyncio.get_running_loop().create_task(_ask(gateway, secret))
    await asyncio.sleep(0.05)
    revoke_key(key_path(None, tmp_path), "alice")
    gateway.ring.refresh()
    held.set()
    assert (await running).body.endswith(b"[DONE]\n\n")
    assert (await _ask(gateway, secret)).status == 401
    assert (await _ask(gateway, spare)).status == 200


async def test_a_hundred_at_once_let_the_limit_through(tmp_path: Path) -> None:
    """Exactly as many as the key allows; the others are told when to come back."""
    secret = _make(tmp_path, limits=Limits(rpm=7))
    gateway, transport = _gateway(tmp_path)
    answers = await asyncio.gather(*(_ask(gateway, secret) for _ in range(100)))
    assert [answered.status for answered in answers].count(200) == 7
    assert len(transport.sent) == 7
    refused = next(answered for answered in answers if answered.status == 429)
    assert _error(refused)["code"] == "rate_limit_exceeded"
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.headers["x-ratelimit-limit-requests"] == "7"
    allowed = next(answered for answered in answers if answered.status == 200)
    assert "x-ratelimit-remaining-requests" in allowed.headers


async def test_places_are_given_back(tmp_path: Path) -> None:
    """However a request ends, the next one may enter."""
    secret = _make(tmp_path, limits=Limits(concurrent=1))
    gateway, _ = _gateway(tmp_path)
    for _ in range(3):
        assert (await _ask(gateway, secret)).status == 200
        assert (await _ask(gateway, secret, b"{}", "/v1/embeddings")).status == 200


@pytest.mark.parametrize("url", [CHAT, "/v1/responses", "/v1/completions"])
async def test_a_key_of_one_model_gets_no_other(url: str, tmp_path: Path) -> None:
    """On every route: what names another model, or none that can be read, is refused."""
    secret = _make(tmp_path, models=("small*",))
    gateway, transport = _gateway(tmp_path)
    assert (await _ask(gateway, secret, b'{"model":"small-2","messages":[]}', url)).status == 200
    for body in (b'{"model":"large","messages":[]}', b'{"messages":[]}', b"not json"):
        answered = await _ask(gateway, secret, body, url)
        assert answered.status == 403
        assert _error(answered)["type"] == "permission_error"
    assert len(transport.sent) == 1


@pytest.mark.parametrize("path", ["chat/completions", "embeddings"])
async def test_a_key_of_one_model_gets_no_other_deployment(path: str, tmp_path: Path) -> None:
    """An Azure path names the model that answers, whatever the body says."""
    secret = _make(tmp_path, models=("small*",))
    gateway, transport = _gateway(tmp_path)
    body = b'{"model":"small","messages":[]}'
    for deployment, status in (("small", 200), ("large", 403)):
        url = f"/openai/deployments/{deployment}/{path}"
        assert (await _ask(gateway, secret, body, url)).status == status
    assert len(transport.sent) == 1


async def test_a_keys_policy_wins_over_the_request(tmp_path: Path) -> None:
    """An operator who switched deferral off for a key means it."""
    secret = _make(tmp_path, policy=KeyPolicy(defer="off"))
    gateway, transport = _gateway(tmp_path)
    body = orjson.dumps(request())
    await _ask(gateway, secret, body)
    assert transport.sent[0].body == body


async def test_a_spent_budget_is_spent(tmp_path: Path) -> None:
    """The cost of answers counts; the next request is refused and not retried by SDKs."""
    secret = _make(tmp_path, limits=Limits(budget_day=1000))
    reply = b'{"model":"small","choices":[],"usage":{"prompt_tokens":1,"cost":0.01}}'
    gateway, _ = _gateway(tmp_path, Prepared(200, JSON_TYPE, reply))
    assert (await _ask(gateway, secret)).status == 200
    answered = await _ask(gateway, secret)
    assert answered.status == 429
    assert answered.headers["x-should-retry"] == "false"


async def test_books_need_an_admin_key(tmp_path: Path) -> None:
    """An ordinary key reads nobody's usage."""
    secret, admin = _make(tmp_path), _make(tmp_path, "root", admin=True)
    gateway, _ = _gateway(tmp_path)
    headers = [("authorization", f"Bearer {secret}")]
    assert (await ask(gateway.app, "GET", "/usher/usage", None, headers)).status == 403
    headers = [("authorization", f"Bearer {admin}")]
    assert (await ask(gateway.app, "GET", "/usher/usage", None, headers)).status == 200


async def test_a_key_that_cannot_be_enforced_closes_the_open_gateway(tmp_path: Path) -> None:
    """Made while two workers serve: nobody enters without a key, nor with one whose limits fail."""
    settings = Settings.model_validate({**_TREE, "server": {"workers": 2}})
    transport = FakeTransport(answer=lambda _: completion("Hi"))
    gateway = build_gateway(settings, tmp_path, {"openai": transport})
    assert (await _ask(gateway, None)).status == 200
    limited = _make(tmp_path, limits=Limits(rpm=1))
    gateway.ring.refresh()
    assert (await _ask(gateway, None)).status == 401
    refused = await _ask(gateway, limited)
    assert (refused.status, _error(refused)["code"]) == (503, "limits_unavailable")
    assert "state.url" in _error(refused)["message"]
    assert (await _ask(gateway, _make(tmp_path, "bob"))).status == 401
    gateway.ring.refresh()
    assert gateway.metrics.registry.get_sample_value("usher_keys_unenforced") == 1
    revoke_key(key_path(None, tmp_path), "alice")
    gateway.ring.refresh()
    assert gateway.metrics.registry.get_sample_value("usher_keys_unenforced") == 0
    assert (await _ask(gateway, limited)).status == 401


async def test_a_key_file_that_cannot_be_read_closes_the_open_gateway(tmp_path: Path) -> None:
    """Everybody hears why, probes go on."""
    gateway, _ = _gateway(tmp_path)
    key_path(None, tmp_path).write_text("{")
    gateway.ring.refresh()
    for secret in (None, "sk-any"):
        refused = await _ask(gateway, secret)
        assert (refused.status, _error(refused)["code"]) == (503, "keys_unavailable")
    assert (await ask(gateway.app, "GET", "/livez")).status == 200


def test_limits_need_one_worker(tmp_path: Path) -> None:
    """Each process would allow the whole limit, so the start is refused with the reason."""
    _make(tmp_path, limits=Limits(rpm=7))
    settings = Settings.model_validate({"server": {"workers": 2}})
    with pytest.raises(ConfigError, match=r"2 processes.*state\.url"):
        open_ring(settings, tmp_path)
    shared = settings.model_copy(update={"state": State(url="redis://127.0.0.1:1")})
    assert not open_ring(shared, tmp_path).open
