"""The OpenAI dialect, byte for byte where it matters."""

from typing import Any

import pytest

from proxy.judge.decisions import decode, encode
from proxy.judge.failures import Failed
from proxy.judge.questions import Choice, Noul, NoulAnswer, Question, Refused, Score

QUESTIONS: dict[str, Question] = {
    "needs_tool": Noul("Tool?", "it needs data", "it does not"),
    "tool": Choice("Which one?", {"gh_create_issue": "Create an issue", "none": None}),
    "urgency": Score("How urgent?", ("can wait", {"label": "today"})),
}
REPLY: dict[str, Any] = {
    "model": "gpt-6-luna",
    "answers": [
        {"type": "predicate", "name": "needs_tool", "probability": 0.93},
        {
            "type": "choice",
            "name": "tool",
            "choice": "gh_create_issue",
            "confidence": 0.8,
            "probabilities": [
                {"value": "gh_create_issue", "probability": 0.9},
                {"value": "none", "probability": 0.1},
            ],
        },
        {
            "type": "score",
            "name": "urgency",
            "score": 0.3,
            "confidence": 0.4,
            "probabilities": [
                {"label": "can wait", "probability": 0.7, "value": 0},
                {"label": "today", "probability": 0.3, "value": 1},
            ],
        },
    ],
    "usage": {"input_tokens": 210, "input_tokens_details": {"cached_tokens": 8}},
}


def test_golden_request() -> None:
    """A predicate has no criteria, so they join its instructions; structure becomes text."""
    assert encode("gpt-6-luna", {"latest": "file a bug"}, QUESTIONS) == {
        "model": "gpt-6-luna",
        "input": '{"latest":"file a bug"}',
        "questions": [
            {
                "type": "predicate",
                "name": "needs_tool",
                "instructions": "Tool?\nYes when: it needs data\nNo when: it does not",
            },
            {
                "type": "choice",
                "name": "tool",
                "instructions": "Which one?",
                "choices": [
                    {"value": "gh_create_issue", "description": "Create an issue"},
                    {"value": "none"},
                ],
            },
            {
                "type": "score",
                "name": "urgency",
                "instructions": "How urgent?",
                "levels": [{"label": "can wait"}, {"label": '{"label":"today"}'}],
            },
        ],
    }


def test_golden_reply() -> None:
    """All three kinds, the usage, and a text state as it is."""
    reading = decode(REPLY, QUESTIONS)
    assert reading.outcome == "ok"
    assert reading.answers["needs_tool"] == NoulAnswer(0.93)
    assert (reading.tokens.prompt, reading.tokens.cached) == (210, 8)
    assert encode("m", "text", QUESTIONS)["input"] == "text"


def test_a_single_question_may_be_refused() -> None:
    """A refusal is an answer of its own kind; the others stay."""
    answers = [*REPLY["answers"][:2], {"type": "refusal", "name": "urgency"}]
    reading = decode({**REPLY, "answers": answers}, QUESTIONS)
    assert reading.answers["urgency"] == Refused()
    assert reading.outcome == "ok"


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "choice", "name": "tool", "choice": "none", "probabilities": {"none": 1}},
        {"type": "choice", "name": "tool", "choice": "none", "probabilities": ["none"]},
        {"type": "choice", "name": "tool", "choice": "none", "probabilities": [{"value": []}]},
        {"type": "choice", "name": ["tool"], "choice": "none"},
        {"type": "predicate", "name": "tool", "probability": 0.3},
        "tool",
    ],
)
def test_one_bad_answer_degrades_its_question_only(broken: Any) -> None:
    """Wrong shapes, wrong types, unhashable names."""
    answers = [REPLY["answers"][0], broken, REPLY["answers"][2]]
    reading = decode({**REPLY, "answers": answers}, QUESTIONS)
    assert set(reading.problems) == {"tool"}


def test_probabilities_may_be_absent() -> None:
    """Then only the label is known."""
    choice = {"type": "choice", "name": "tool", "choice": "none"}
    score = {"type": "score", "name": "urgency", "score": 1}
    reading = decode({"answers": [REPLY["answers"][0], choice, score]}, QUESTIONS)
    assert reading.outcome == "ok"


@pytest.mark.parametrize("body", [None, [], {}, {"answers": {}}])
def test_a_reply_without_answers_is_malformed(body: Any) -> None:
    """There is nothing to degrade."""
    with pytest.raises(Failed, match="malformed"):
        decode(body, QUESTIONS)
