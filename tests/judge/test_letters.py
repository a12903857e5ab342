"""Decisions by the probabilities of one letter."""

import math
from typing import Any

import pytest

from proxy.judge.emulate import lay_out
from proxy.judge.letters import NoLogprobs, letters_request, read_letters
from proxy.judge.questions import Choice, ChoiceAnswer, Refused
from proxy.judge.validate import BadAnswer

ASKED = lay_out("tool", Choice("Which tool?", {"a": "first", "b": None, "c": None}), 1)


def top(*pairs: tuple[str, float]) -> Any:
    tokens = [{"token": token, "logprob": math.log(p)} for token, p in pairs]
    content = [{"token": "A", "logprob": 0.0, "top_logprobs": tokens}]
    return {"choices": [{"message": {"content": "A"}, "logprobs": {"content": content}}]}


def test_golden_request() -> None:
    """One token, twenty alternatives, the state before the question."""
    body = letters_request({"latest": "hi"}, ASKED)
    assert {k: v for k, v in body.items() if k != "messages"} == {
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": 20,
    }
    assert body["messages"][1]["content"] == (
        '<document>\n{"latest":"hi"}\n</document>\n\nWhich tool?\nA. a: first\nB. b\nC. c\n'
        "Answer with the letter of the one option that fits, and nothing else."
    )


def test_spellings_of_a_letter_are_merged() -> None:
    """` A`, `A`, `a` and `A.` are one option; what is missing has nothing."""
    body = top(("A", 0.3), (" A", 0.2), ("a", 0.05), ("A.", 0.05), ("B", 0.3), ("the", 0.1))
    answer = read_letters(body, ASKED)
    assert isinstance(answer, ChoiceAnswer)
    assert answer.calibration == "token"
    assert answer.probabilities == {
        "a": pytest.approx(0.6 / 0.9),
        "b": pytest.approx(0.3 / 0.9),
        "c": 0.0,
    }
    assert answer.confidence == pytest.approx((0.6 / 0.9 - 1 / 3) / (2 / 3))


def test_little_mass_on_the_letters_is_no_answer() -> None:
    """0.06 on the letters would renormalise to a bogus certainty."""
    with pytest.raises(BadAnswer, match="something else"):
        read_letters(top(("A", 0.05), ("B", 0.01), ("Sure", 0.9)), ASKED)


@pytest.mark.parametrize(
    "logprobs", [None, {}, {"content": []}, {"content": None}, {"content": [{"token": "A"}]}]
)
def test_servers_without_log_probabilities_are_told_apart(logprobs: Any) -> None:
    """Many accept the field and return nothing."""
    body = {"choices": [{"message": {"content": "A"}, "logprobs": logprobs}]}
    with pytest.raises(NoLogprobs):
        read_letters(body, ASKED)


@pytest.mark.parametrize("logprob", [None, "0", 0.5, math.nan, True])
def test_broken_log_probabilities(logprob: Any) -> None:
    """A probability above one is none."""
    entry = {"token": "A", "logprob": logprob}
    content = [{"top_logprobs": [entry]}]
    body = {"choices": [{"message": {}, "logprobs": {"content": content}}]}
    with pytest.raises(BadAnswer):
        read_letters(body, ASKED)


def test_refusals() -> None:
    """A model that declines has answered."""
    assert read_letters({"choices": [{"message": {"refusal": "no"}}]}, ASKED) == Refused()
