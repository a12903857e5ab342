"""The System One dialect, byte for byte where it matters."""

import math
from typing import Any

import pytest

from proxy.judge.failures import Failed
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
from proxy.judge.systemone import (
    decode,
    decode_question,
    encode,
    encode_answer,
    encode_question,
)

QUESTIONS: dict[str, Question] = {
    "needs_tool": Noul("Does `latest` need a tool?", "needs data", "can be answered"),
    "tool": Choice("Which?", {"gh_create_issue": "Create an issue", "calendar_list": None}),
    "urgency": Score("How urgent is it?", ("can wait", "this week", "today")),
}
REPLY: dict[str, Any] = {
    "model": "jev-1.14.0",
    "answers": {
        "needs_tool": {"type": "noul", "noul": 0.09},
        "tool": {
            "type": "choice",
            "choice": "calendar_list",
            "confidence": 0.99,
            "probabilities": {"gh_create_issue": 0.06, "calendar_list": 0.94},
        },
        "urgency": {
            "type": "score",
            "score": 0.25,
            "confidence": 0.63,
            "legend": {"0": "can wait", "1": "this week", "2": "today"},
            "probabilities": {"0": 0.8, "1": 0.15, "2": 0.05},
        },
    },
    "usage": {"input_tokens": 412, "output_tokens": 58},
}


def test_golden_request() -> None:
    """The documented body."""
    assert encode("jev-latest", {"latest": "hi"}, QUESTIONS) == {
        "model": "jev-latest",
        "state": {"latest": "hi"},
        "questions": {
            "needs_tool": {
                "type": "noul",
                "instructions": "Does `latest` need a tool?",
                "criteria": {"true": "needs data", "false": "can be answered"},
            },
            "tool": {
                "type": "choice",
                "instructions": "Which?",
                "criteria": {"gh_create_issue": "Create an issue", "calendar_list": None},
            },
            "urgency": {
                "type": "score",
                "instructions": "How urgent is it?",
                "criteria": ["can wait", "this week", "today"],
            },
        },
    }


def test_golden_reply() -> None:
    """The documented reply; confidence is recomputed."""
    reading = decode(REPLY, QUESTIONS)
    assert reading.answers["needs_tool"] == NoulAnswer(0.09)
    tool = reading.answers["tool"]
    assert isinstance(tool, ChoiceAnswer)
    assert tool.label == "calendar_list"
    assert tool.confidence == pytest.approx(0.88)
    assert reading.model == "jev-1.14.0"
    assert (reading.tokens.prompt, reading.tokens.completion) == (412, 58)
    assert reading.outcome == "ok"


def test_criteria_are_sent_only_as_far_as_they_exist() -> None:
    """One side, no side, or both for servers that want both or neither."""
    one = Noul("?", yes="yes")
    assert encode_question(one)["criteria"] == {"true": "yes"}
    assert "criteria" not in encode_question(Noul("?"), both_sides=True)
    assert encode_question(one, both_sides=True)["criteria"] == {
        "true": "yes",
        "false": "Anything else.",
    }


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("needs_tool", None),
        ("needs_tool", {"type": "noul", "noul": None}),
        ("needs_tool", {"type": "noul", "noul": math.nan}),
        ("needs_tool", {"type": "box", "box": {}}),
        ("tool", {"type": "noul", "noul": 0.5}),
        ("tool", {"type": "choice", "choice": "other", "probabilities": {}}),
        ("urgency", {"type": "score", "score": 3}),
    ],
)
def test_one_bad_answer_degrades_its_question_only(name: str, answer: Any) -> None:
    """The other two questions keep their answers."""
    broken = {**REPLY, "answers": {**REPLY["answers"], name: answer}}
    reading = decode(broken, QUESTIONS)
    assert set(reading.problems) == {name}
    assert set(reading.answers) == set(QUESTIONS) - {name}


def test_what_was_not_asked_is_ignored() -> None:
    """More ids than questions do no harm."""
    answers = {**REPLY["answers"], "extra": {"type": "box"}}
    assert decode({**REPLY, "answers": answers}, QUESTIONS).outcome == "ok"


@pytest.mark.parametrize("body", [None, [], {}, {"answers": []}, "text"])
def test_a_reply_without_answers_is_malformed(body: Any) -> None:
    """There is nothing to degrade."""
    with pytest.raises(Failed, match="malformed"):
        decode(body, QUESTIONS)


def test_answers_survive_the_way_out_and_back() -> None:
    """What we serve, we can read."""
    reading = decode(REPLY, QUESTIONS)
    served = {
        name: encode_answer(question, reading.answers[name]) for name, question in QUESTIONS.items()
    }
    assert decode({"answers": served}, QUESTIONS).answers == reading.answers
    urgency = served["urgency"] or {}
    assert urgency["legend"] == {"0": "can wait", "1": "this week", "2": "today"}


def test_unmeasured_answers_are_served_without_confidence() -> None:
    """Clients refuse null, so it is 0: look twice."""
    choice = encode_answer(QUESTIONS["tool"], ChoiceAnswer("calendar_list"))
    assert choice is not None
    assert (choice["confidence"], choice["probabilities"]["calendar_list"]) == (0.0, 1.0)
    score = encode_answer(QUESTIONS["urgency"], ScoreAnswer(1.25))
    assert score is not None
    assert score["probabilities"] == {"0": 0.0, "1": 0.75, "2": 0.25}
    assert (score["score"], score["confidence"]) == (1.25, 0.0)


def test_the_dialect_has_no_word_for_a_refusal() -> None:
    """The caller decides what to do about it."""
    assert encode_answer(QUESTIONS["tool"], Refused()) is None


def test_questions_survive_recording() -> None:
    """Encoding and decoding a question gives the same one."""
    for question in QUESTIONS.values():
        assert decode_question(encode_question(question)) == question
    with pytest.raises(ValueError, match="unknown"):
        decode_question({"type": "box"})
