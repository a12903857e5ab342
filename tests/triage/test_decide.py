"""Judgments become rulings; whatever is unsure stays."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from proxy.judge.ask import Desk, Judge, Member
from proxy.judge.books import NoPrices
from proxy.judge.breaker import Breaker, Patience
from proxy.judge.cache import AnswerCache
from proxy.judge.failures import Failed, Failure
from proxy.judge.job import Attempt, Job, Purpose
from proxy.judge.questions import Answer, ChoiceAnswer, Question
from proxy.judge.reading import Reading
from proxy.judge.wording import load_wordings
from proxy.ledger.usage import Row
from proxy.observe.log import configure
from proxy.settings import Log
from proxy.triage.candidates import Candidate, find_candidates
from proxy.triage.decide import BuiltInDecider, JudgedDecider
from proxy.wire import JSONObject
from tests.triage.talk import FakeWriter, Studio, converse, said, small, step, user

pytestmark = pytest.mark.anyio
PURPOSE = Purpose("triage", context="triage")


@dataclass(slots=True)
class FakeBackend:
    """Gives the same answer to every question, or fails."""

    answer: Answer | None
    name: str = "fake"
    model: str = "fake-1"
    local: bool = False
    jobs: list[Job] = field(default_factory=list)

    def answers(self, question: Question) -> bool:
        return True

    async def judge(self, job: Job) -> Reading:
        self.jobs.append(job)
        if self.answer is None:
            job.record(Attempt(self.name, self.model, "timeout", 0.0, 0.0))
            raise Failed(Failure.TIMEOUT)
        answers: Mapping[str, Answer] = dict.fromkeys(job.questions, self.answer)
        reading = Reading(answers, {}, self.model)
        job.record(Attempt(self.name, self.model, "ok", 0.0, 0.0, reading))
        return reading


def _decider(backend: FakeBackend, **settings: object) -> JudgedDecider:
    rows: list[Row] = []
    desk = Desk(NoPrices(), rows.append, AnswerCache(0, 0), configure(Log(level="error")))
    judge = Judge([Member(backend, Breaker(Patience(9, 1)))], desk)
    return JudgedDecider(judge, load_wordings()["triage_action"], small(**settings))


def _candidates(*texts: str) -> list[Candidate]:
    messages: list[JSONObject] = [m for text in texts for m in (user(text), said("Yes"))]
    found = find_candidates(converse([*messages, user("x"), said("y"), user("z")]), None, small())
    return sorted(found.units, key=lambda candidate: candidate.unit.number)[: len(texts)]


def _choice(label: str, probability: float | None, **more: str) -> ChoiceAnswer:
    odds = {} if probability is None else {label: probability}
    return ChoiceAnswer(label, odds, **more)  # type: ignore[arg-type]  # a calibration's name


@pytest.mark.parametrize(("label", "probability", "outcome", "reason"), [
    ("drop", 0.7, "drop", "suggested"),
    ("drop", 0.69, "keep", "below threshold"),
    ("compress", 0.5, "compress", "suggested"),
    ("compress", 0.49, "keep", "below threshold"),
    ("keep", 0.4, "keep", "suggested"),
    ("drop", None, "keep", "unmeasured"),
])  # fmt: skip
async def test_thresholds(label: str, probability: float | None, outcome: str, reason: str) -> None:
    """A wrong drop is worse than a wrong note, and both worse than a long prompt."""
    decider = _decider(FakeBackend(_choice(label, probability)))
    ruled = await decider.decide(_candidates("Hi"), "now", PURPOSE)
    assert [(r.outcome, r.reason) for r in ruled.rulings] == [(outcome, reason)]
    assert ruled.rulings[0].describe(5)["probability"] == probability


async def test_a_constraint_is_never_dropped() -> None:
    """At most compressed, with its words kept."""
    decider = _decider(FakeBackend(_choice("drop", 0.99)))
    ruled = await decider.decide(_candidates("Never use port 80."), "now", PURPOSE)
    assert (ruled.rulings[0].suggestion, ruled.rulings[0].outcome) == ("drop", "compress")


async def test_one_request_asks_about_every_unit() -> None:
    """Each under its own name; the newest words are beside them."""
    backend = FakeBackend(_choice("keep", 0.9))
    await _decider(backend).decide(_candidates("One", "Two"), "now", PURPOSE)
    (job,) = backend.jobs
    assert job.state == {"newest": "now", "unit_1": "user: One\nassistant: Yes",
                         "unit_2": "user: Two\nassistant: Yes"}  # fmt: skip
    assert "`unit_2`" in str(job.questions["unit_2"].instructions)


async def test_more_than_a_judge_can_read_is_asked_in_parts() -> None:
    """So that no part is clipped away."""
    backend = FakeBackend(_choice("drop", 0.9))
    decider = _decider(backend, state_chars=200, view_chars=100)
    ruled = await decider.decide(_candidates("1", "2", "3", "4", "5"), "now", PURPOSE)
    assert len(backend.jobs) == 3
    assert len(ruled.rulings) == 5


@pytest.mark.parametrize("answer", [None, _choice("drop", 0.99, calibration="embedded")])
async def test_without_an_answer_nothing_is_ruled(answer: ChoiceAnswer | None) -> None:
    """A failure, or a ranker's opinion instead of a judge's."""
    ruled = await _decider(FakeBackend(answer)).decide(_candidates("Hi"), "now", PURPOSE)
    assert not ruled.rulings
    assert (ruled.failure or "").startswith("judge: ")


async def test_the_built_in_rules() -> None:
    """Small talk goes, long results are cleared, everything else stays."""
    messages = [
        user("thanks a lot!"), said("Sure"), user("Port 8080, please"), said("Fine"),
        user("Do"), *step(1, "x" * 2000), *step(2, "short"), said("Done"), user("a"), *step(3),
    ]  # fmt: skip
    found = find_candidates(converse(messages), None, small())
    ruled = await BuiltInDecider().decide(found.units, "now", PURPOSE)
    outcomes = {r.candidate.unit.number: r.outcome for r in ruled.rulings}
    assert outcomes == {1: "drop", 2: "keep", 3: "keep", 4: "clear", 5: "keep", 6: "keep"}


async def test_a_judge_that_wants_everything_gone() -> None:
    """The task, rules, what is important and the newest turn stay all the same."""
    long = "Many words about something that was long ago. " * 20
    eager = _decider(FakeBackend(_choice("drop", 1.0)))
    studio = Studio(small(protect={"turns": 1, "steps": 1}), eager, FakeWriter("Noted."))
    rule = f"Deploy on Mondays. Never touch the port 8443 of it. {long}"
    messages = [user("Help me deploy."), said("Gladly."), user(rule), said("Yes."), user(long)]
    messages += [said("x"), user(f"This is important: {long}"), said("y"), user("Now?")]
    _, session = await studio.send(messages)
    studio.hear(session, 5_000)
    await studio.settle()
    sent, _ = await studio.send([*messages, said("z"), user("And?")])
    text = "\n".join(str(message["content"]) for message in sent)
    assert sent[0] == messages[0]
    assert "\nNever touch the port 8443 of it." in text
    assert messages[6] in sent
    assert user(long) not in sent
