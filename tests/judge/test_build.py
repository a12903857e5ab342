"""Which judges a configuration means."""

from pathlib import Path
from typing import Any

import pytest

from proxy.errors import BadRequest, ConfigError
from proxy.judge.books import NoPrices
from proxy.judge.build import Around, Judges
from proxy.judge.calibrate import Locked, write_lock
from proxy.judge.deadline import Deadline
from proxy.judge.failures import Failed, Failure
from proxy.judge.job import Purpose
from proxy.judge.questions import Noul
from proxy.observe.log import silent
from proxy.settings import Settings
from tests.fakes.transport import FakeTransport
from tests.judge.chatmodel import ChatModel
from tests.judge.fakes import JUDGED, SPAM, Books, body_of, reply

pytestmark = pytest.mark.anyio

UPSTREAM = {"base_url": "http://up.test/v1"}


def judges(
    classification: Any,
    transport: FakeTransport | None = None,
    environ: dict[str, str] | None = None,
    upstream: Any = UPSTREAM,
    books: Books | None = None,
) -> Judges:
    settings = Settings.model_validate({"classification": classification, "upstream": upstream})
    ways = {"openai": transport or FakeTransport(), "standin": FakeTransport()}
    record = (books or Books()).rows.append
    return Judges(settings, Around(ways, NoPrices(), record, silent(), environ or {}))


def chain(built: Judges) -> list[str]:
    return [member.backend.name for member in built.default.chain]


JEV = {"typesafe": {"api_key": "k"}}
CHAT = {"model": "small"}


@pytest.mark.parametrize(
    ("classification", "names"),
    [
        ({}, ["embedded"]),
        ({"providers": JEV, "chat": CHAT}, ["embedded"]),
        ({"enabled": True}, ["embedded"]),
        ({"enabled": True, "providers": JEV, "chat": CHAT}, ["typesafe", "default", "embedded"]),
        ({"enabled": True, "chat": CHAT}, ["default", "embedded"]),
        (
            {"enabled": True, "chat": {**CHAT, "base_url": "http://c/v1"}, "backend": "chat"},
            ["chat", "embedded"],
        ),
        (
            {"enabled": True, "providers": JEV, "chat": CHAT, "backend": "embedded"},
            ["embedded"],
        ),
        (
            {"enabled": True, "backend": "typesafe", "providers": JEV, "chat": CHAT},
            ["typesafe", "embedded"],
        ),
        ({"enabled": True, "providers": {"typesafe": {}}}, ["embedded"]),
    ],
)
def test_the_chain(classification: Any, names: list[str]) -> None:
    """Off, auto, one by name; what lacks its key is left out and the rest works."""
    assert chain(judges(classification)) == names


def test_a_presets_name_is_enough_when_its_key_is_in_the_environment() -> None:
    """`backend: typesafe` and TYPESAFE_API_KEY."""
    built = judges({"enabled": True, "backend": "typesafe"}, environ={"TYPESAFE_API_KEY": "k"})
    assert chain(built) == ["typesafe", "embedded"]
    assert "jev-latest" in built.names()


def test_every_configured_judge_shows_its_breaker() -> None:
    """Also two of one name, as one that is open where either is."""
    chat = {"model": "small", "base_url": "http://c/v1"}
    providers = {"chat": {"api_key": "k", "base_url": "http://d/v1", "model": "m"}}
    built = judges({"enabled": True, "providers": providers, "chat": chat})
    assert chain(built) == ["chat", "chat", "embedded"]
    assert built.breakers() == {"chat": 0, "embedded": 0}
    first, second, _ = built.default.chain
    first.breaker.fail(Failed(Failure.UNAUTHORIZED, status=401))
    second.breaker.succeed()
    assert built.breakers() == {"chat": 1, "embedded": 0}


def test_a_judge_that_a_client_names_raises_no_alarm() -> None:
    """Its name or key may be wrong, which is no fault of the deployment."""
    built = judges({})
    named = built.for_model("no-such-model").chain[0]
    named.breaker.fail(Failed(Failure.PAYMENT, status=402))
    assert named.breaker.open
    assert built.breakers() == {"embedded": 0}


def test_librechats_block_fits_as_it_is() -> None:
    """Pasted from its documentation."""
    block = {
        "enabled": True,
        "provider": "cloudflare",
        "providers": {
            "cloudflare": {
                "baseURL": "https://cf.test/ai/run",
                "model": "typesafe/jev",
                "dialect": "systemone",
                "requestKey": "input",
                "responseKey": "result",
                "apiKeyEnv": "CLOUDFLARE_API_TOKEN",
                "timeoutMs": 9000,
                "maxRetries": 1,
            }
        },
        "toolSelection": {"enabled": True, "shortlist": 5, "maxCatalogTools": 200},
        "memoryGate": {"enabled": True, "threshold": 0.5},
    }
    built = judges(block, environ={"CLOUDFLARE_API_TOKEN": "k"})
    assert chain(built) == ["cloudflare", "embedded"]


@pytest.mark.parametrize(
    ("classification", "message"),
    [
        ({"enabled": True, "backend": "typsafe"}, "backend: typsafe is none of auto, chat"),
        ({"enabled": True, "backend": "chat"}, "chat.model is required"),
        ({"backend": "replay"}, "replay is required"),
        ({"backend": "replay", "replay": "/nowhere.jsonl"}, "cannot be read"),
        ({"calibration": "/nowhere.json"}, "cannot be read"),
    ],
)
def test_mistakes_are_errors_at_start(classification: Any, message: str) -> None:
    """One line that names the setting."""
    with pytest.raises(ConfigError, match=message):
        judges(classification)


def test_recorded_answers_and_thresholds_are_read_at_start(tmp_path: Path) -> None:
    """A replay needs no model; a lock is there for the gate."""
    recording = tmp_path / "r.jsonl"
    recording.write_bytes(b"\n")
    lock = tmp_path / "lock.json"
    locked = {"memory_request": Locked(0.4, "h", "m")}
    lock.write_bytes(write_lock("auto", locked))
    built = judges({"backend": "replay", "replay": str(recording), "calibration": str(lock)})
    assert chain(built) == ["replay"]
    assert built.lock == locked


async def ask(built: Judges, model: str, authorization: str | None = None) -> Any:
    judge = built.for_model(model, authorization)
    return await judge.decide("hello", SPAM, Deadline.after(1), Purpose("served"))


async def test_decision_names_mean_the_configured_judge() -> None:
    """Clients ask for jev-latest; they get what is configured."""
    transport = FakeTransport(answer=lambda _: reply(JUDGED))
    built = judges({"enabled": True, "providers": JEV}, transport)
    for name in ("jev-latest", "jev-1.13.0", "clef", "gpt-6-luna", "typesafe", "usher"):
        assert built.for_model(name) is built.served
    assert all(not member.backend.local for member in built.served.chain)
    assert (await ask(built, "jev-latest")).ok


async def test_any_chat_model_becomes_a_decision_model() -> None:
    """By its own name, on the gateway's upstream, with the caller's key where there is no other."""
    model, books = ChatModel(), Books()
    transport = FakeTransport(answer=model)
    built = judges({}, transport, books=books)
    assert (await ask(built, "gpt-4.1-mini", "Bearer mine")).ok
    assert transport.sent[0].url == "http://up.test/v1/chat/completions"
    assert (b"authorization", b"Bearer mine") in transport.sent[0].headers
    assert body_of(transport.sent[0])["model"] == "gpt-4.1-mini"
    asked = len(model.asked)
    assert (await ask(built, "gpt-4.1-mini", "Bearer mine")).ok
    assert len(model.asked) == asked
    assert books.outcomes[-1] == "cache_hit"
    assert built.for_model("gpt-4.1-mini", "Bearer other") is not built.for_model(
        "gpt-4.1-mini", "Bearer mine"
    )


async def test_the_gateways_key_wins_over_the_callers() -> None:
    """As it does for chat."""
    transport = FakeTransport(answer=ChatModel())
    built = judges({}, transport, upstream={**UPSTREAM, "api_key": "ours"})
    await ask(built, "small", "Bearer mine")
    assert (b"authorization", b"Bearer ours") in transport.sent[0].headers


async def test_the_small_models_own_key_and_address() -> None:
    """From the section or from a variable it names."""
    chat = {"model": "small", "base_url": "http://c.test/v1/", "api_key_env": "SMALL_KEY"}
    transport = FakeTransport(answer=ChatModel())
    classification = {"enabled": True, "chat": {**chat, "method": "structured"}}
    built = judges(classification, transport, {"SMALL_KEY": "s"})
    assert (await ask(built, "jev-latest")).ok
    assert transport.sent[0].url == "http://c.test/v1/chat/completions"
    assert (b"authorization", b"Bearer s") in transport.sent[0].headers


async def test_azure_gets_its_own_key_header() -> None:
    """And the deployment in the path."""
    transport = FakeTransport(answer=ChatModel())
    azure = {"base_url": "https://r.openai.azure.com", "api_key": "a"}
    built = judges({}, transport, upstream=azure)
    await ask(built, "small")
    assert "/deployments/small/" in transport.sent[0].url
    assert (b"api-key", b"a") in transport.sent[0].headers


def test_named_judges_are_not_kept_for_ever() -> None:
    """Whoever makes up names fills no memory."""
    built = judges({})
    first = built.for_model("m0")
    for i in range(100):
        built.for_model(f"m{i}")
    assert built.for_model("m0") is not first


async def test_without_any_judge_a_question_is_unsupported() -> None:
    """And the answer says what to set."""
    built = judges({})
    verdict = await built.default.decide(
        "x", {"a": Noul("?")}, Deadline.after(1), Purpose("served")
    )
    assert verdict.failure is Failure.UNSUPPORTED


def test_a_provider_without_a_way_to_it_cannot_judge() -> None:
    """The client is told so."""
    provider = {"name": "bedrock", "kind": "litellm", "models": ["claude*"]}
    settings = Settings.model_validate({"providers": [provider], "upstream": UPSTREAM})
    around = Around({"openai": FakeTransport()}, NoPrices(), Books().rows.append, silent())
    with pytest.raises(BadRequest, match="bedrock"):
        Judges(settings, around).for_model("claude-haiku")
