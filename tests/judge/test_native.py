"""Decision endpoints: one golden request and reply per preset, limits, and failures by batch."""

import time
from typing import Any

import pytest

from proxy.judge.confidence import HALF_UNIT
from proxy.judge.failures import Failed, Failure
from proxy.judge.job import Attempt
from proxy.judge.native import json_headers, unwrap
from proxy.judge.presets import PRESETS
from proxy.judge.questions import Choice, ChoiceAnswer, Noul, NoulAnswer, Question, Score
from tests.fakes.transport import FakeTransport
from tests.judge.fakes import NO_SPAM, SPAM, Silence, answering, body_of, make_job, native, reply

pytestmark = pytest.mark.anyio

ACCOUNT = "https://api.cloudflare.com/client/v4/accounts/acct/ai/run"
SPAM_QUESTION = {"type": "noul", "instructions": "Is it spam?"}
SPAM_BODY = {"state": "hello", "questions": {"spam": SPAM_QUESTION}}
OPENAI_BODY = {
    "model": "gpt-6-luna",
    "input": "hello",
    "questions": [{"type": "predicate", "name": "spam", "instructions": "Is it spam?"}],
}
OPENAI_REPLY = {
    "model": "gpt-6-luna",
    "answers": [{"type": "predicate", "name": "spam", "probability": 0.09}],
}
ENVELOPE = {"result": NO_SPAM, "success": True, "errors": [], "messages": []}

GOLDEN: list[tuple[str, str, Any, Any]] = [
    ("systemone", "http://h/v1/systemone", {"model": "jev-latest", **SPAM_BODY}, NO_SPAM),
    (
        "typesafe",
        "https://api.typesafe.ai/v1/systemone",
        {"model": "jev-latest", **SPAM_BODY},
        NO_SPAM,
    ),
    (
        "openrouter",
        "https://openrouter.ai/api/alpha/decisions",
        {"model": "~typesafe/jev-latest", **SPAM_BODY},
        {**NO_SPAM, "id": "gen-1", "provider": "TypeSafe", "usage": {"cost": 0.0000479}},
    ),
    (
        "cloudflare-clef",
        f"{ACCOUNT}/@cf/cloudflare/clef",
        {"model": "clef", **SPAM_BODY},
        ENVELOPE,
    ),
    (
        "cloudflare-jev",
        ACCOUNT,
        {"model": "typesafe/jev", "input": SPAM_BODY},
        {"result": NO_SPAM},
    ),
    ("openai-decisions", "https://api.openai.com/v1/decisions", OPENAI_BODY, OPENAI_REPLY),
]


@pytest.mark.parametrize(("preset", "url", "request_body", "reply_body"), GOLDEN)
async def test_golden_exchange(preset: str, url: str, request_body: Any, reply_body: Any) -> None:
    """Every preset sends what its endpoint wants and understands what it says."""
    transport = FakeTransport(reply(reply_body))
    base = "http://h" if preset == "systemone" else None
    backend = native(transport, preset=preset, base_url=base, account="acct")
    reading = await backend.judge(make_job("hello", SPAM))
    sent = transport.sent[0]
    assert (sent.method, sent.url) == ("POST", url)
    assert (b"authorization", b"Bearer k") in sent.headers
    assert body_of(sent) == request_body
    assert reading.answers == {"spam": NoulAnswer(0.09)}


def test_the_table_is_covered() -> None:
    """A new preset needs a golden exchange."""
    assert {preset for preset, *_ in GOLDEN} == set(PRESETS)


@pytest.mark.parametrize(
    "body",
    [{**ENVELOPE, "success": False}, {"result": NO_SPAM}, {**ENVELOPE, "success": "true"}],
)
def test_clef_counts_only_when_it_says_success(body: Any) -> None:
    """Fail closed on its envelope."""
    with pytest.raises(Failed, match="server_error"):
        unwrap(PRESETS["cloudflare-clef"], body)


@pytest.mark.parametrize("body", [None, [], "text"])
def test_an_envelope_must_be_an_object(body: Any) -> None:
    """Anything else is malformed."""
    with pytest.raises(Failed, match="malformed"):
        unwrap(PRESETS["systemone"], body)


async def test_openrouter_gets_both_sides_or_none() -> None:
    """Its schema refuses one-sided criteria."""
    transport = FakeTransport(reply(NO_SPAM))
    backend = native(transport, preset="openrouter")
    await backend.judge(make_job("hello", {"spam": Noul("?", yes="advertising")}))
    criteria = body_of(transport.sent[0])["questions"]["spam"]["criteria"]
    assert criteria == {"true": "advertising", "false": "Anything else."}


async def test_ids_that_a_server_refuses_are_replaced_on_the_wire() -> None:
    """Clef takes letters, digits and `._-`; models never see ids anyway."""

    def answer(body: Any) -> Any:
        assert set(body["questions"]) == {"q0", "q1"}
        return {"answers": {q: {"type": "noul", "noul": 0.25} for q in body["questions"]}}

    backend = native(answering(answer), preset="systemone")
    reading = await backend.judge(make_job("s", {"질문": Noul("?"), "b": Noul("?")}))
    assert reading.answers == {"질문": NoulAnswer(0.25), "b": NoulAnswer(0.25)}


async def test_more_questions_than_a_request_takes_are_split() -> None:
    """100 questions at 64 per request are two requests, and one reading."""
    sizes: list[int] = []

    def answer(body: Any) -> Any:
        sizes.append(len(body["questions"]))
        answers = {q: {"type": "noul", "noul": 0.5} for q in body["questions"]}
        return {"result": {"answers": answers, "model": "clef"}, "success": True}

    backend = native(answering(answer), preset="cloudflare-clef", account="a")
    questions: dict[str, Question] = {f"t{i}": Noul(f"{i}?") for i in range(100)}
    reading = await backend.judge(make_job("s", questions))
    assert sizes == [64, 36]
    assert len(reading.answers) == 100


async def test_a_failing_batch_does_not_cost_the_other() -> None:
    """What was answered is kept; only when nothing was is it a failure."""
    good = {"result": {"answers": {"t0": {"type": "noul", "noul": 0.5}}}, "success": True}
    transport = FakeTransport(reply(good), reply({}, 400))
    backend = native(transport, preset="cloudflare-clef", account="a")
    questions: dict[str, Question] = {f"t{i}": Noul(f"{i}?") for i in range(65)}
    assert list((await backend.judge(make_job("s", questions))).answers) == ["t0"]
    failing = FakeTransport(reply({}, 400), reply({}, 400))
    backend = native(failing, preset="cloudflare-clef", account="a")
    with pytest.raises(Failed, match="bad_request"):
        await backend.judge(make_job("s", questions))


async def test_300_options_are_one_request_of_255() -> None:
    """No tournament: the ranker drops the rest, and they keep a probability."""
    options = {f"tool_{i}": f"Does {i}" for i in range(300)}

    def answer(body: Any) -> Any:
        labels = list(body["questions"]["tool"]["criteria"])
        assert len(labels) == 255
        weights = dict.fromkeys(labels, 0.0) | {"tool_7": 1.0}
        choice = {"type": "choice", "choice": "tool_7", "probabilities": weights}
        return {"answers": {"tool": choice}}

    backend = native(answering(answer))
    job = make_job("does 7", {"tool": Choice("Which?", options)})
    found = (await backend.judge(job)).answers["tool"]
    assert isinstance(found, ChoiceAnswer)
    assert found.label == "tool_7"
    assert len(found.probabilities) == 300


async def test_a_state_that_is_too_large_is_cut_once() -> None:
    """The second request carries half of it; a third is not sent."""
    too_large = reply({"detail": {"error_type": "max_tokens_exceeded"}}, 400)
    transport = FakeTransport(too_large, reply(NO_SPAM))
    attempts: list[Attempt] = []
    backend = native(transport)
    await backend.judge(make_job("x" * 4_000, SPAM, attempts))
    first, second = (len(body_of(sent)["state"]) for sent in transport.sent)
    assert second <= first // 2 + 10
    assert [attempt.outcome for attempt in attempts] == ["too_large", "ok"]
    never = native(FakeTransport(reply({}, 413), reply({}, 413)))
    with pytest.raises(Failed) as failed:
        await never.judge(make_job("x" * 4_000, SPAM))
    assert failed.value.failure is Failure.TOO_LARGE


async def test_an_endpoint_may_have_less_time_than_the_judgment() -> None:
    """`timeout_ms` of a provider is a ceiling of its own."""
    backend = native(Silence(), seconds=0.05)
    begun = time.monotonic()
    with pytest.raises(Failed, match="timeout"):
        await backend.judge(make_job("s", SPAM, seconds=5))
    assert time.monotonic() - begun < 1


def test_what_a_server_cannot_take_it_is_not_asked() -> None:
    """A rating with eleven levels goes to somebody else."""
    backend = native(FakeTransport())
    assert not backend.answers(Score("?", tuple(str(i) for i in range(11))))
    assert backend.answers(Score("?", ("a", "b")))


def test_replies_must_not_be_compressed() -> None:
    """The transport does not decompress."""
    assert (b"accept-encoding", b"identity") in json_headers(None)
    assert all(name != b"authorization" for name, _ in json_headers(None))
    assert HALF_UNIT == 0.005
