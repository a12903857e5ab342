"""The judge inside."""

import math

import pytest

from proxy.judge.embedded import EmbeddedBackend, rank_choice
from proxy.judge.failures import Failed
from proxy.judge.job import Attempt
from proxy.judge.questions import Choice, ChoiceAnswer, Noul, NoulAnswer, Question, Score
from tests.judge.fakes import make_job

pytestmark = pytest.mark.anyio

TOOLS = Choice(
    "Which?",
    {"send_mail": "Send an e-mail", "list_files": "List files", "none": "No tool"},
    none="none",
)
GATE = Noul("Remember?", embedded="gate")


async def test_choices_are_ranked_and_known_questions_answered() -> None:
    """Without a key and without a network; a choice has no confidence."""
    judge = EmbeddedBackend({"gate": lambda _: 0.93})
    attempts: list[Attempt] = []
    questions: dict[str, Question] = {"tool": TOOLS, "gate": GATE}
    state = {"latest": "please send an e-mail to Ali"}
    reading = await judge.judge(make_job(state, questions, attempts))
    tool = reading.answers["tool"]
    assert isinstance(tool, ChoiceAnswer)
    assert (tool.label, tool.confidence, tool.calibration) == ("send_mail", None, "embedded")
    assert math.fsum(tool.probabilities.values()) == pytest.approx(1.0)
    assert reading.answers["gate"] == NoulAnswer(0.93, "embedded")
    assert [(a.outcome, a.local) for a in attempts] == [("ok", True)]


def test_it_answers_what_it_knows() -> None:
    """No rating, and no yes/no question that nobody trained it for."""
    judge = EmbeddedBackend({"gate": lambda _: 0.5})
    assert judge.answers(TOOLS)
    assert judge.answers(GATE)
    assert not judge.answers(Noul("Is it raining?"))
    assert not judge.answers(Noul("?", embedded="another"))
    assert not judge.answers(Score("?", ("a", "b")))


async def test_a_model_may_not_be_able_to_tell() -> None:
    """Then there is no answer, instead of a guess."""
    judge = EmbeddedBackend({"gate": lambda _: None})
    reading = await judge.judge(make_job("x", {"tool": TOOLS, "gate": GATE}))
    assert set(reading.problems) == {"gate"}
    with pytest.raises(Failed, match="unsupported"):
        await judge.judge(make_job("x", {"gate": GATE}))


def test_no_match_means_none() -> None:
    """Or, where there is no such option, that everything is alike."""
    assert rank_choice(TOOLS, "xyzzy").label == "none"
    alike = rank_choice(Choice("?", {"a": None, "b": None}), "xyzzy")
    assert set(alike.probabilities.values()) == {0.5}


def test_a_ranker_that_ran_is_not_run_again() -> None:
    """Its scores decide."""
    prior = Choice("?", TOOLS.options, "none", {"list_files": 9.0, "send_mail": 1.0})
    assert rank_choice(prior, "send an e-mail").label == "list_files"
