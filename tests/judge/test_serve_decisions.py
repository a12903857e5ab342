"""Usher as OpenAI's decisions endpoint, without HTTP."""

from typing import Any

import orjson
import pytest

from proxy.errors import Unauthorized
from proxy.judge.failures import Failure
from proxy.judge.questions import (
    Answer,
    Choice,
    ChoiceAnswer,
    Noul,
    NoulAnswer,
    Refused,
    Score,
    ScoreAnswer,
)
from proxy.judge.serve import Invalid
from proxy.judge.serve_decisions import read_request, write_error, write_flaws, write_verdict
from proxy.judge.verdict import Verdict
from proxy.keys.refusal import LimitReached
from proxy.ledger.usage import Tokens

SECRET = "the user's own words"
ASKED: dict[str, Any] = {
    "model": "gpt-6-luna",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": SECRET}]},
        {"type": "function_call", "call_id": "c1", "name": "gh_search", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "[]"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "sh", "input": "ls"},
        {
            "type": "custom_tool_call_output",
            "call_id": "c2",
            "output": [{"type": "input_text", "text": "a.txt"}],
        },
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "so?"}, {"type": "input_json", "data": {}}],
        },
    ],
    "questions": [
        {"type": "predicate", "name": "needs_tool", "instructions": "Tool?"},
        {
            "type": "choice",
            "instructions": [{"type": "input_text", "text": "Which?"}],
            "choices": [{"value": True}, {"value": "true", "description": "the word"}],
        },
        {
            "type": "score",
            "name": "urgency",
            "instructions": "How?",
            "levels": [{"label": "later"}, {"label": "now", "description": "today"}],
        },
    ],
}
ANSWERS: dict[str, Answer] = {
    "0": NoulAnswer(0.93),
    "1": ChoiceAnswer("true (boolean)", {"true (boolean)": 0.9, "true": 0.1}, 0.8),
    "2": ScoreAnswer(0.25, (0.75, 0.25), 0.5),
}


def test_a_request_becomes_questions() -> None:
    """Conversation items with calls and results; true and "true" are two values."""
    decision = read_request(orjson.dumps(ASKED))
    assert decision.state == [
        {"role": "user", "content": SECRET},
        {"tool_call": "gh_search", "arguments": "{}"},
        {"tool_result": "[]"},
        {"tool_call": "sh", "arguments": "ls"},
        {"tool_result": "a.txt"},
        {"role": "assistant", "content": "no"},
        {"role": "user", "content": ["so?", {}]},
    ]
    assert decision.questions == {
        "0": Noul("Tool?"),
        "1": Choice("Which?", {"true (boolean)": None, "true": "the word"}),
        "2": Score("How?", ("later", "now: today")),
    }


def test_golden_response() -> None:
    """Answers in question order, with names or null, and typed values."""
    verdict = Verdict(
        ANSWERS, models=dict.fromkeys(ANSWERS, "small-1"), tokens=Tokens(prompt=210, completion=1)
    )
    served = write_verdict(read_request(orjson.dumps(ASKED)), verdict, "r")
    assert served.status == 200
    assert orjson.loads(served.body) == {
        "model": "small-1",
        "answers": [
            {"type": "predicate", "name": "needs_tool", "probability": 0.93},
            {
                "type": "choice",
                "name": None,
                "choice": True,
                "confidence": 0.8,
                "probabilities": [
                    {"value": True, "probability": 0.9},
                    {"value": "true", "probability": 0.1},
                ],
            },
            {
                "type": "score",
                "name": "urgency",
                "score": 0.25,
                "confidence": 0.5,
                "probabilities": [
                    {"label": "later", "probability": 0.75, "value": 0},
                    {"label": "now", "probability": 0.25, "value": 1},
                ],
            },
        ],
        "usage": {
            "input_tokens": 210,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 211,
        },
    }


def test_a_missing_answer_is_a_refusal_while_others_are_there() -> None:
    """The dialect has a word for it."""
    partial = Verdict({"0": NoulAnswer(0.5), "1": Refused()}, Failure.MALFORMED)
    served = write_verdict(read_request(orjson.dumps(ASKED)), partial, "r")
    kinds = [answer["type"] for answer in orjson.loads(served.body)["answers"]]
    assert kinds == ["predicate", "refusal", "refusal"]


def test_unmeasured_answers_have_no_confidence() -> None:
    """Which is 0 here, because null is not allowed."""
    bare = Verdict({**ANSWERS, "1": ChoiceAnswer("true"), "2": ScoreAnswer(1.0)})
    answers = orjson.loads(write_verdict(read_request(orjson.dumps(ASKED)), bare, "r").body)[
        "answers"
    ]
    assert (answers[1]["confidence"], answers[1]["choice"]) == (0.0, "true")
    assert answers[2]["confidence"] == 0.0


def test_no_answer_at_all_is_an_error() -> None:
    """In OpenAI's envelope."""
    failed = Verdict(failure=Failure.TIMEOUT)
    served = write_verdict(read_request(orjson.dumps(ASKED)), failed, "r")
    assert served.status == 504
    assert orjson.loads(served.body)["error"]["type"] == "timeout_error"


def asked(question: Any) -> dict[str, Any]:
    return {**ASKED, "questions": [question]}


def said(*items: Any) -> dict[str, Any]:
    return {**ASKED, "input": list(items)}


PREDICATE = {"type": "predicate", "name": "a", "instructions": "?"}
BROKEN: list[tuple[Any, str | None]] = [
    ({**ASKED, "model": ""}, "model"),
    ({**ASKED, "input": None}, "input"),
    (said(), "input"),
    (said("x"), "input[0]"),
    (said({"type": "reasoning"}), "input[0].type"),
    (said({"content": "no role"}), "input[0].type"),
    (said({"type": ["message"]}), "input[0].type"),
    (said({"type": {}, "call_id": "zz"}), "input[0].type"),
    (said({"role": "user", "content": [{"type": []}]}), "input[0].content[0].type"),
    (said({"type": "function_call_output", "call_id": "zz", "output": ""}), "input[0].call_id"),
    (said({"role": "user", "content": 3}), "input[0].content"),
    (said({"role": "user", "content": [{"type": "input_image"}]}), "input[0].content[0].type"),
    ({**ASKED, "questions": []}, "questions"),
    ({**ASKED, "questions": [PREDICATE] * 401}, "questions"),
    ({**ASKED, "questions": [PREDICATE, PREDICATE]}, "questions[1].name"),
    (asked("x"), "questions[0]"),
    (asked({**PREDICATE, "type": "noul"}), "questions[0].type"),
    (asked({**PREDICATE, "instructions": None}), "questions[0].instructions"),
    (asked({**PREDICATE, "type": "choice"}), "questions[0].choices"),
    (
        asked({**PREDICATE, "type": "choice", "choices": [{"value": "a"}, {"value": "a"}]}),
        "questions[0].choices[1].value",
    ),
    (
        asked({**PREDICATE, "type": "choice", "choices": [{"value": "a"}, {"value": 1}]}),
        "questions[0].choices[1].value",
    ),
    (asked({**PREDICATE, "type": "score"}), "questions[0].levels"),
    (asked({**PREDICATE, "type": "score", "levels": [{"label": "a"}]}), "questions[0].levels"),
    (
        asked({**PREDICATE, "type": "score", "levels": [{"label": "a"}, {}]}),
        "questions[0].levels[1].label",
    ),
]


@pytest.mark.parametrize(("body", "param"), BROKEN)
def test_what_cannot_be_judged_is_a_400_that_names_the_place(body: Any, param: str) -> None:
    """And quotes nothing."""
    with pytest.raises(Invalid) as invalid:
        read_request(orjson.dumps(body))
    served = write_flaws(invalid.value, "r")
    error = orjson.loads(served.body)["error"]
    assert served.status == 400
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert SECRET.encode() not in served.body


def test_broken_json_names_no_place() -> None:
    """There is none to name."""
    with pytest.raises(Invalid) as invalid:
        read_request(b"[]")
    assert orjson.loads(write_flaws(invalid.value, "r").body)["error"]["param"] is None


def test_a_text_is_an_input() -> None:
    """The simplest request."""
    assert read_request(orjson.dumps({**ASKED, "input": "hi"})).state == "hi"


def test_the_gateways_own_refusals() -> None:
    """As everywhere else in OpenAI's API."""
    served = write_error(Unauthorized("No such key."), "r")
    assert orjson.loads(served.body)["error"]["code"] == "invalid_api_key"
    used_up = LimitReached("Slow down.", 2.0, [(b"x-ratelimit-limit-requests", b"5")])
    assert dict(write_error(used_up, "r").headers)[b"x-ratelimit-limit-requests"] == b"5"
