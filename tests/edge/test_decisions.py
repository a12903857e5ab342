"""Usher as a decision provider, through its edge."""

from typing import Any

import orjson
import pytest

from proxy.edge.decisions import decision_routes
from proxy.edge.routes import Extras, build_routes
from proxy.judge.books import NoPrices
from proxy.judge.build import Around, Judges
from proxy.keys.key import GatewayKey, Proof
from proxy.observe.log import silent
from proxy.plan.identity import Caller
from proxy.settings import Settings
from proxy.upstream.transport import Prepared, Transport
from tests.edge.driver import Answered, KeyBook, Rig, ask, refuse_chat
from tests.fakes.transport import FakeTransport
from tests.judge.chatmodel import ChatModel
from tests.judge.fakes import JUDGED, Silence, reply

pytestmark = pytest.mark.anyio

SYSTEM_ONE = {
    "model": "jev-latest",
    "state": "I want my money back",
    "questions": {"spam": {"type": "noul", "instructions": "Is it spam?"}},
}
DECISIONS = {
    "model": "gpt-4.1-mini",
    "input": "I want my money back",
    "questions": [{"type": "predicate", "name": "refund", "instructions": "Refund?"}],
}
JEV = {"enabled": True, "providers": {"typesafe": {"api_key": "k"}}}


class Provider:
    """A gateway's edge with a judge behind it."""

    def __init__(
        self,
        transport: Transport,
        classification: Any = JEV,
        keys: KeyBook | None = None,
        seconds: float = 1.0,
        **more: Any,
    ) -> None:
        self.rig = Rig(
            transport=transport, keys=keys, overrides={"server": {"max_body_bytes": 9_000}}
        )
        upstream = {"base_url": "http://up.test/v1"}
        settings = Settings.model_validate(
            {"classification": classification, "upstream": upstream, **more}
        )
        around = Around({"openai": transport}, NoPrices(), self.rig.ledger.record, silent())
        judges = Judges(settings, around)
        routes = decision_routes(self.rig.edge, judges, self.rig.forward, seconds)
        self.app = build_routes(self.rig.edge, refuse_chat, self.rig.forward, Extras(routes))

    async def post(self, path: str, body: Any, *headers: tuple[str, str]) -> Answered:
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        return await ask(self.app, "POST", path, data, list(headers))


async def test_a_decision_is_answered_and_on_the_callers_bill() -> None:
    """Reply, facts in headers, one row with context classification."""
    provider = Provider(FakeTransport(reply(JUDGED)))
    answered = await provider.post("/v1/systemone", SYSTEM_ONE, ("x-request-id", "r9"))
    assert answered.status == 200
    assert orjson.loads(answered.body) == {
        "model": "jev-1.14.0",
        "answers": {"spam": {"type": "noul", "noul": 0.09}},
        "usage": {"input_tokens": 1140, "output_tokens": 7},
    }
    assert answered.headers["x-typesafe-request-id"] == "r9"
    assert answered.headers["x-usher-calibration"] == "native"
    assert answered.headers["x-usher-classification"] == "tokens=1140;cost=0.000047880"
    row = provider.rig.ledger.rows[0]
    assert (row.request_id, row.context, row.cost_nano_usd) == ("r9", "classification", 47_880)


async def test_any_chat_model_decides() -> None:
    """OpenAI's dialect over a model that knows nothing of it, with the caller's own key."""
    model = ChatModel()
    transport = FakeTransport(answer=model)
    provider = Provider(transport, {})
    answered = await provider.post("/v1/decisions", DECISIONS, ("authorization", "Bearer mine"))
    assert answered.status == 200
    answer = orjson.loads(answered.body)["answers"][0]
    assert (answer["type"], answer["name"]) == ("predicate", "refund")
    assert answered.headers["x-usher-calibration"] == "token"
    assert (b"authorization", b"Bearer mine") in transport.sent[0].headers


async def test_a_gateway_key_never_goes_upstream() -> None:
    """It let the caller in, and that is all it is for."""
    transport = FakeTransport(answer=ChatModel())
    keys = KeyBook({"secret": Caller(tenant="t", key="alice")})
    provider = Provider(transport, {}, keys)
    answered = await provider.post("/v1/decisions", DECISIONS, ("authorization", "Bearer secret"))
    assert answered.status == 200
    assert all(b"secret" not in value for _, value in transport.sent[0].headers)
    assert provider.rig.ledger.rows[0].key == "alice"


@pytest.mark.parametrize(
    ("path", "body"), [("/v1/systemone", SYSTEM_ONE), ("/v1/decisions", DECISIONS)]
)
async def test_a_keys_models_hold(path: str, body: dict[str, Any]) -> None:
    """A model that the key may not use is a 403 and goes nowhere, in either dialect."""
    transport = FakeTransport(answer=ChatModel())
    provider = Provider(transport, {}, _book(models=("gpt-4.1*",)))
    secret = ("authorization", "Bearer secret")
    refused = await provider.post(path, {**body, "model": "o3"}, secret)
    assert (refused.status, transport.sent) == (403, [])
    assert b"may not use the model o3" in refused.body
    allowed = await provider.post(path, {**body, "model": "gpt-4.1-mini"}, secret)
    assert allowed.status == 200


async def test_a_keys_upstream_holds() -> None:
    """Its judgments go where its chats go, with that upstream's own credentials."""
    transport = FakeTransport(answer=ChatModel())
    keys = _book(upstream="other")
    other = {"name": "other", "base_url": "http://other.test/v1", "api_key": "second"}
    provider = Provider(transport, {}, keys, providers=[{**other, "models": ["x"]}])
    answered = await provider.post("/v1/decisions", DECISIONS, ("authorization", "Bearer secret"))
    assert answered.status == 200
    assert transport.sent[0].url.startswith("http://other.test/")
    assert (b"authorization", b"Bearer second") in transport.sent[0].headers


async def test_a_key_whose_upstream_is_gone_is_refused() -> None:
    """It is not sent to another one."""
    transport = FakeTransport(answer=ChatModel())
    provider = Provider(transport, {}, _book(upstream="gone"))
    answered = await provider.post("/v1/decisions", DECISIONS, ("authorization", "Bearer secret"))
    assert (answered.status, transport.sent) == (403, [])


def _book(**rules: Any) -> KeyBook:
    """One key, `secret`, with those rules."""
    grant = GatewayKey("alice", Proof("id", "digest"), 0.0, **rules)
    return KeyBook({"secret": Caller(tenant="t", key="alice", grant=grant)})


@pytest.mark.parametrize("path", ["/v1/systemone", "/v1/decisions"])
async def test_strangers_are_refused_in_the_dialects_own_words(path: str) -> None:
    """401, with TypeSafe's or OpenAI's envelope."""
    provider = Provider(FakeTransport(), keys=KeyBook({}))
    for headers in ([], [("authorization", "Bearer wrong")]):
        answered = await provider.post(path, SYSTEM_ONE, *headers)
        body = orjson.loads(answered.body)
        assert answered.status == 401
        if path.endswith("systemone"):
            assert body["detail"]["error_type"] == "authentication_error"
        else:
            assert body["error"]["code"] == "invalid_api_key"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/systemone", b"{", 422),
        ("/v1/systemone", {**SYSTEM_ONE, "questions": {}}, 422),
        ("/v1/systemone", {**SYSTEM_ONE, "state": "x" * 9_999}, 413),
        ("/v1/decisions", b"{", 400),
        ("/v1/decisions", {**DECISIONS, "questions": []}, 400),
    ],
)
async def test_what_cannot_be_judged_is_not_sent(path: str, body: Any, status: int) -> None:
    """And is no 5xx."""
    transport = FakeTransport()
    answered = await Provider(transport).post(path, body)
    assert (answered.status, transport.sent) == (status, [])


async def test_a_silent_judge_is_a_timeout() -> None:
    """Within the deadline."""
    answered = await Provider(Silence(), seconds=0.05).post("/v1/systemone", SYSTEM_ONE)
    assert answered.status == 504
    assert orjson.loads(answered.body)["detail"]["error_type"] == "timeout_error"


async def test_a_rate_limit_is_passed_on() -> None:
    """With the provider's own time to wait."""
    limited = reply({}, 429, [(b"retry-after", b"7")])
    answered = await Provider(FakeTransport(limited)).post("/v1/systemone", SYSTEM_ONE)
    assert (answered.status, answered.headers["retry-after"]) == (429, "7")


async def test_one_model_list_for_both_kinds_of_client() -> None:
    """OpenAI's clients read `data`, TypeSafe's read `models`."""
    upstream = {"object": "list", "data": [{"id": "gpt-4.1", "object": "model"}]}
    transport = FakeTransport(reply(upstream, 200, [(b"content-type", b"application/json")]))
    provider = Provider(transport)
    headers = [("accept-encoding", "gzip")]
    answered = await ask(provider.app, "GET", "/v1/models", b"", headers)
    body = orjson.loads(answered.body)
    assert body["data"] == upstream["data"]
    assert [model["name"] for model in body["models"]] == ["gpt-4.1", "jev-latest"]
    assert transport.sent[0].url == "http://up.test/v1/models"
    assert all(name != b"accept-encoding" for name, _ in transport.sent[0].headers)


@pytest.mark.parametrize(
    "upstream", [Prepared(404, [], b"nope"), Prepared(200, [], b"<html>no list</html>")]
)
async def test_a_model_list_that_is_none_passes_as_it_is(upstream: Prepared) -> None:
    """Errors and web pages are the upstream's own."""
    body = await upstream.read()
    provider = Provider(FakeTransport(Prepared(upstream.status, [], body)))
    answered = await ask(provider.app, "GET", "/v1/models")
    assert (answered.status, answered.body) == (upstream.status, body)
