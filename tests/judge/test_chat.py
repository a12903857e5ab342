"""A chat model as a judge: its abilities are found out once, and it answers everything."""

import asyncio
import math
import time
from typing import Any

import pytest

from proxy.errors import ConnectFailed
from proxy.judge.chat import MOST_LETTER_CALLS, ChatBackend, Style
from proxy.judge.exchange import Endpoint, Exchange
from proxy.judge.failures import Failed
from proxy.judge.job import Attempt
from proxy.judge.questions import (
    Choice,
    ChoiceAnswer,
    Noul,
    NoulAnswer,
    Question,
    Refused,
    Score,
    ScoreAnswer,
)
from proxy.upstream.transport import Prepared, UpstreamRequest
from tests.fakes.transport import FakeTransport
from tests.judge.chatmodel import ChatModel
from tests.judge.fakes import Silence, make_job, reply

pytestmark = pytest.mark.anyio

QUESTIONS: dict[str, Question] = {
    "refund": Noul("Is a refund wanted?", "wants money back", "asks something else"),
    "team": Choice("Which team?", {"billing": "invoice and refund", "tech": "bugs", "sales": None}),
    "anger": Score("How angry?", ("calm", "frustrated", "furious")),
}
STATE = "I want a refund for my invoice, I am frustrated"


def backend(model: Any, **style: Any) -> ChatBackend:
    endpoint = Endpoint("chat", "small", "http://c/v1/chat/completions", [], 0, decisions=False)
    return ChatBackend(Exchange(FakeTransport(answer=model), endpoint), Style(**style))


async def test_letters_where_the_model_reports_them() -> None:
    """One probe, then one request per question, all from token probabilities."""
    model, attempts = ChatModel(), list[Attempt]()
    judge = backend(model)
    reading = await judge.judge(make_job(STATE, QUESTIONS, attempts))
    assert model.kinds == ["logprobs"] * 4
    assert reading.outcome == "ok"
    team = reading.answers["team"]
    assert isinstance(team, ChoiceAnswer)
    assert (team.label, team.calibration) == ("billing", "token")
    assert team.confidence is not None
    assert isinstance(reading.answers["refund"], NoulAnswer)
    assert isinstance(reading.answers["anger"], ScoreAnswer)
    assert reading.tokens.prompt == 150
    await judge.judge(make_job(STATE, QUESTIONS))
    assert len(model.asked) == 7
    assert all(body["stream"] is False for body in model.asked)
    assert not any(attempt.decisions for attempt in attempts)


@pytest.mark.parametrize(
    ("abilities", "probes", "used"),
    [
        ({"logprobs": False}, ["logprobs", "structured"], "structured"),
        (
            {"logprobs": False, "structured": False},
            ["logprobs", "structured", "structured", "tool"],
            "tool",
        ),
        ({"temperature": False}, ["logprobs", "structured", "structured"], "structured"),
    ],
)
async def test_the_ladder_is_climbed_down_once(
    abilities: dict[str, bool], probes: list[str], used: str
) -> None:
    """Letters, else a schema, else a tool; the second judgment asks at once as it must."""
    model = ChatModel(**abilities)  # type: ignore[arg-type]  # all of them are booleans
    judge = backend(model)
    reading = await judge.judge(make_job(STATE, QUESTIONS))
    assert model.kinds == [*probes, used]
    assert reading.outcome == "ok"
    assert reading.answers["refund"] == NoulAnswer(0.7, "verbalized")
    await judge.judge(make_job("another state", QUESTIONS))
    assert model.kinds == [*probes, used, used]


async def test_a_model_that_can_do_nothing_is_unsupported() -> None:
    """And it is found out anew next time: it may have been a passing mood."""
    model = ChatModel(logprobs=False, structured=False, tool=False)
    with pytest.raises(Failed, match="unsupported"):
        await backend(model).judge(make_job(STATE, QUESTIONS))


async def test_a_passing_failure_proves_nothing() -> None:
    """An outage during the probe leaves the ability open."""
    outcomes = iter([ConnectFailed("down")])
    model = ChatModel()
    judge = backend(lambda request: next(outcomes, None) or model(request))
    with pytest.raises(Failed, match="network"):
        await judge.judge(make_job(STATE, QUESTIONS))
    assert (await judge.judge(make_job(STATE, QUESTIONS))).outcome == "ok"


async def test_a_wrong_model_name_is_said_at_once() -> None:
    """404 is no missing ability."""
    with pytest.raises(Failed) as failed:
        await backend(lambda _: reply({}, 404)).judge(make_job(STATE, QUESTIONS))
    assert failed.value.status == 404


async def test_questions_without_mass_on_the_letters_are_written_down_instead() -> None:
    """The model wanted to say something else; its numbers are better than a bogus certainty."""
    model = ChatModel()
    judge = backend(model, method="logprobs")
    model.mass = 0.06
    reading = await judge.judge(make_job(STATE, QUESTIONS))
    assert model.kinds == ["logprobs"] * 3 + ["structured"]
    assert {a.calibration for a in reading.answers.values() if not isinstance(a, Refused)} == {
        "verbalized"
    }
    model.structured = False
    assert not (await judge.judge(make_job(STATE, QUESTIONS))).answers


async def test_self_reported_numbers_are_trusted_on_request_only() -> None:
    """Without it a choice has no confidence, so that selection widens."""
    for trust in (False, True):
        judge = backend(ChatModel(), method="structured", trust_self_reported=trust)
        answer = (await judge.judge(make_job(STATE, QUESTIONS))).answers["team"]
        assert isinstance(answer, ChoiceAnswer)
        assert (answer.confidence is not None) is trust


async def test_255_options_are_one_call_and_all_get_a_probability() -> None:
    """Nineteen letters and a way out; the rest shares what "none of these" got."""
    model = ChatModel()
    options = {"billing": "refund for an invoice"} | {f"q{i}": f"topic {i}" for i in range(254)}
    judge = backend(model, method="logprobs")
    reading = await judge.judge(make_job(STATE, {"queue": Choice("Which?", options)}))
    answer = reading.answers["queue"]
    assert len(model.asked) == 1
    assert isinstance(answer, ChoiceAnswer)
    assert answer.label == "billing"
    assert list(answer.probabilities) == list(options)
    assert math.fsum(answer.probabilities.values()) == pytest.approx(1.0)


async def test_many_questions_are_one_request() -> None:
    """Forty yes/no questions are not forty calls."""
    model = ChatModel()
    questions: dict[str, Question] = {f"t{i}": Noul(f"{i}?") for i in range(MOST_LETTER_CALLS + 1)}
    reading = await backend(model, method="logprobs").judge(make_job(STATE, questions))
    assert model.kinds == ["structured"]
    assert len(reading.answers) == len(questions)


async def test_an_operators_parameters_go_along() -> None:
    """Added, replaced, or removed by null."""
    model = ChatModel()
    parameters = {"reasoning_effort": "none", "temperature": None}
    await backend(model, method="structured", parameters=parameters).judge(
        make_job(STATE, QUESTIONS)
    )
    assert model.asked[0]["reasoning_effort"] == "none"
    assert "temperature" not in model.asked[0]


async def test_lies_cost_their_question_and_prose_costs_all() -> None:
    """Sums of three, a text for a number, no object at all."""
    model = ChatModel(written={"q1": 0.9, "q2_o1": 1, "q2_o2": 1, "q2_o3": 1, "q3_o1": "x"})
    judge = backend(model, method="structured")
    reading = await judge.judge(make_job(STATE, QUESTIONS))
    assert set(reading.answers) == {"refund"}
    assert set(reading.problems) == {"team", "anger"}
    prose = {"choices": [{"message": {"content": "Sure!"}}]}
    with pytest.raises(Failed, match="malformed"):
        await backend(lambda _: reply(prose), method="tool").judge(make_job(STATE, QUESTIONS))


async def test_refusals_are_answers() -> None:
    """A model that declines is not asked again another way."""
    for method in ("logprobs", "structured", "tool"):
        model = ChatModel(refuses=True)
        reading = await backend(model, method=method).judge(make_job(STATE, QUESTIONS))
        assert set(reading.answers.values()) == {Refused()}


async def test_one_failing_letter_does_not_cost_the_others() -> None:
    """It is written down instead, and lost only when that fails, too."""
    model, calls = ChatModel(structured=False), iter(range(99))
    judge = backend(
        lambda request: reply({}, 400) if next(calls) == 1 else model(request), method="logprobs"
    )
    reading = await judge.judge(make_job(STATE, QUESTIONS))
    assert len(reading.answers) == 2
    assert len(reading.problems) == 1


async def test_when_every_letter_fails_the_judgment_does() -> None:
    """There is nothing to keep."""
    with pytest.raises(Failed, match="bad_request"):
        await backend(lambda _: reply({}, 400), method="logprobs").judge(make_job(STATE, QUESTIONS))


async def test_two_judgments_at_once_find_out_together() -> None:
    """The second one waits for the first one's probe."""
    model = ChatModel(logprobs=False)

    class Slow(FakeTransport):
        async def send(self, request: UpstreamRequest) -> Prepared:
            await asyncio.sleep(0.01)
            return await super().send(request)

    endpoint = Endpoint("chat", "small", "http://c/v1/chat/completions", [], 0, decisions=False)
    judge = ChatBackend(Exchange(Slow(answer=model), endpoint), Style())
    jobs = [make_job(STATE, QUESTIONS), make_job("another state", QUESTIONS)]
    await asyncio.gather(*(judge.judge(job) for job in jobs))
    assert model.kinds == ["logprobs", "structured", "structured", "structured"]


async def test_nobody_waits_longer_than_its_deadline_for_anothers_probe() -> None:
    """Added latency never exceeds a judgment's own deadline."""
    endpoint = Endpoint("chat", "small", "http://c/v1/chat/completions", [], 0, decisions=False)
    judge = ChatBackend(Exchange(Silence(), endpoint), Style())
    first = asyncio.get_running_loop().create_task(
        judge.judge(make_job(STATE, QUESTIONS, seconds=0.5))
    )
    await asyncio.sleep(0.01)
    begun = time.monotonic()
    with pytest.raises(Failed, match="breaker_open"):
        await judge.judge(make_job(STATE, QUESTIONS, seconds=0.05))
    assert time.monotonic() - begun < 0.3
    with pytest.raises(Failed, match="timeout"):
        await first
