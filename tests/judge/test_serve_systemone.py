"""Usher as a System One server, without HTTP."""

from typing import Any

import orjson
import pytest

from proxy.errors import RateLimited, Unauthorized
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
from proxy.judge.serve_systemone import read_request, write_error, write_flaws, write_verdict
from proxy.judge.verdict import Verdict
from proxy.keys.refusal import LimitReached
from proxy.ledger.usage import Tokens

SECRET = "the user's own words"
ASKED: dict[str, Any] = {
    "model": "jev-latest",
    "state": {"message": SECRET},
    "questions": {
        "refund": {"type": "noul", "criteria": {"true": "wants money"}},
        "team": {"type": "choice", "instructions": ["Route it."], "criteria": {"a": None, "b": {}}},
        "anger": {"type": "score", "instructions": "How?", "criteria": ["calm", {"l": "angry"}]},
    },
    "x_unknown": 1,
}
ANSWERS: dict[str, Answer] = {
    "refund": NoulAnswer(0.9),
    "team": ChoiceAnswer("a", {"a": 0.8, "b": 0.2}, 0.6),
    "anger": ScoreAnswer(0.25, (0.75, 0.25), 0.5),
}


def test_a_request_becomes_questions() -> None:
    """Structured texts, one-sided criteria, null descriptions and unknown fields are fine."""
    decision = read_request(orjson.dumps(ASKED))
    assert decision.model == "jev-latest"
    assert decision.state == {"message": SECRET}
    assert decision.questions == {
        "refund": Noul(None, "wants money"),
        "team": Choice(["Route it."], {"a": None, "b": {}}),
        "anger": Score("How?", ("calm", {"l": "angry"})),
    }


def test_golden_response() -> None:
    """Model, answers by name, integer usage, string keys in scores."""
    verdict = Verdict(
        ANSWERS, models=dict.fromkeys(ANSWERS, "small-1"), tokens=Tokens(prompt=150, completion=3)
    )
    served = write_verdict(read_request(orjson.dumps(ASKED)), verdict, "req-1")
    assert served.status == 200
    assert orjson.loads(served.body) == {
        "model": "small-1",
        "answers": {
            "refund": {"type": "noul", "noul": 0.9},
            "team": {
                "type": "choice",
                "choice": "a",
                "confidence": 0.6,
                "probabilities": {"a": 0.8, "b": 0.2},
            },
            "anger": {
                "type": "score",
                "score": 0.25,
                "confidence": 0.5,
                "legend": {"0": "calm", "1": {"l": "angry"}},
                "probabilities": {"0": 0.75, "1": 0.25},
            },
        },
        "usage": {"input_tokens": 150, "output_tokens": 3},
    }
    assert dict(served.headers)[b"x-typesafe-request-id"] == b"req-1"


def changed(name: str, question: Any) -> dict[str, Any]:
    return {**ASKED, "questions": {name: question}}


OPTIONS = {f"o{i}": None for i in range(256)}
BROKEN: list[Any] = [
    {**ASKED, "model": None},
    {**ASKED, "state": None},
    {**ASKED, "state": 3},
    {**ASKED, "questions": None},
    {**ASKED, "questions": {}},
    {**ASKED, "questions": {str(i): {"type": "noul", "instructions": "?"} for i in range(401)}},
    changed("", {"type": "noul", "instructions": "?"}),
    changed("q", "text"),
    changed("q", {"instructions": "?"}),
    changed("q", {"type": "boolean", "instructions": "?"}),
    changed("q", {"type": "box", "instructions": "?"}),
    changed("q", {"type": "noul"}),
    changed("q", {"type": "noul", "instructions": 3}),
    changed("q", {"type": "noul", "criteria": "yes"}),
    changed("q", {"type": "noul", "criteria": {"true": 1}}),
    changed("q", {"type": "choice", "criteria": {}}),
    changed("q", {"type": "choice", "criteria": ["a", "b"]}),
    changed("q", {"type": "choice", "criteria": {"a": None}}),
    changed("q", {"type": "choice", "criteria": OPTIONS}),
    changed("q", {"type": "choice", "criteria": {"a": 1, "b": 2}}),
    changed("q", {"type": "score", "criteria": {"0": "a", "1": "b"}}),
    changed("q", {"type": "score", "criteria": ["a"]}),
    changed("q", {"type": "score", "criteria": [str(i) for i in range(11)]}),
    changed("q", {"type": "score", "criteria": ["a", None]}),
]


@pytest.mark.parametrize("body", BROKEN)
def test_what_cannot_be_judged_is_a_422_that_quotes_nothing(body: Any) -> None:
    """A list of places and messages, as TypeSafe's validation errors, without the input."""
    with pytest.raises(Invalid) as invalid:
        read_request(orjson.dumps(body))
    served = write_flaws(invalid.value, "req-1")
    detail = orjson.loads(served.body)["detail"]
    assert served.status == 422
    assert set(detail[0]) == {"loc", "msg", "type"}
    assert detail[0]["loc"][0] == "body"
    assert SECRET.encode() not in served.body


@pytest.mark.parametrize(
    ("verdict", "status", "kind"),
    [
        (Verdict(failure=Failure.TIMEOUT), 504, "timeout_error"),
        (Verdict({"refund": NoulAnswer(0.5)}, Failure.MALFORMED), 502, "upstream_error"),
        (Verdict({**ANSWERS, "team": Refused()}), 400, "refusal"),
    ],
)
def test_an_incomplete_verdict_is_an_error(verdict: Verdict, status: int, kind: str) -> None:
    """The dialect promises an answer to every question."""
    served = write_verdict(read_request(orjson.dumps(ASKED)), verdict, "r")
    assert served.status == status
    assert orjson.loads(served.body)["detail"]["error_type"] == kind


def test_the_gateways_own_refusals() -> None:
    """A wrong key and a limit, in TypeSafe's words."""
    served = write_error(Unauthorized("No such key."), "r")
    assert (served.status, orjson.loads(served.body)["detail"]) == (
        401,
        {"error_type": "authentication_error", "message": "No such key."},
    )
    limited = write_error(RateLimited("Slow down.", retry_after=2.0), "r")
    assert dict(limited.headers)[b"retry-after"] == b"2"
    used_up = LimitReached("Slow down.", 2.0, [(b"x-ratelimit-limit-requests", b"5")])
    assert dict(write_error(used_up, "r").headers)[b"x-ratelimit-limit-requests"] == b"5"


def test_a_verdict_without_a_model_names_the_one_asked_for() -> None:
    """The field is required."""
    served = write_verdict(read_request(orjson.dumps(ASKED)), Verdict(ANSWERS), "r")
    assert orjson.loads(served.body)["model"] == "jev-latest"
