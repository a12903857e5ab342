"""Decisions by numbers that the model writes down."""

from typing import Any

import pytest

from proxy.judge.emulate import lay_out
from proxy.judge.numbers import number_keys, numbers_request, read_numbers, read_object
from proxy.judge.questions import Choice, ChoiceAnswer, Noul, NoulAnswer, Refused, Score
from proxy.judge.validate import BadAnswer, Rules

WRITTEN = Rules(calibration="verbalized", slack=0.05, confident=False)
ASKED = [
    lay_out("needs", Noul("Needed?", "yes text"), 2),
    lay_out("tool", Choice("Which?", {"a": "first", "b": None}), 2),
    lay_out("much", Score("How much?", ("low", "high")), 2),
]
NAMES = ["q1", "q2_o1", "q2_o2", "q3_o1", "q3_o2"]


def said(message: Any) -> Any:
    return {"choices": [{"message": message}]}


def test_golden_structured_request() -> None:
    """A closed, flat object of numbers, all required; ranges are checked by us."""
    body = numbers_request("hi", ASKED, as_tool=False)
    assert body["response_format"]["json_schema"] == {
        "name": "decision",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {name: {"type": "number"} for name in NAMES},
            "required": NAMES,
            "additionalProperties": False,
        },
    }
    text = body["messages"][1]["content"]
    assert "q1: the probability of yes" in text
    assert "q2_o1: a: first\nq2_o2: b" in text


def test_golden_tool_request() -> None:
    """The same schema as a tool that must be called."""
    body = numbers_request("hi", ASKED, as_tool=True)
    assert body["tool_choice"] == {"type": "function", "function": {"name": "emit_decision"}}
    assert body["tools"][0]["function"]["parameters"]["required"] == NAMES
    assert "response_format" not in body


def test_written_numbers_become_answers() -> None:
    """Sums may be off by five hundredths; confidence is not computed from them."""
    keys = number_keys(ASKED)
    numbers = {"q1": 0.8, "q2_o1": 0.7, "q2_o2": 0.33, "q3_o1": 0.5, "q3_o2": 0.5}
    found = [read_numbers(numbers, one, keys[one.name], WRITTEN) for one in ASKED]
    assert found[0] == NoulAnswer(0.8, "verbalized")
    assert isinstance(found[1], ChoiceAnswer)
    assert (found[1].label, found[1].confidence) == ("a", None)
    assert read_numbers(None, ASKED[0], ["q1"], WRITTEN) == Refused()


@pytest.mark.parametrize("numbers", [{}, {"q1": "0.8"}, {"q1": None}, {"q1": 1.4}])
def test_lies_cost_their_question(numbers: Any) -> None:
    """A text is no number, and null is not 0."""
    with pytest.raises(BadAnswer):
        read_numbers(numbers, ASKED[0], ["q1"], WRITTEN)


@pytest.mark.parametrize(
    "message",
    [
        {"content": '{"q1": 0.5}'},
        {"content": '```json\n{"q1": 0.5}\n```'},
        {"tool_calls": [{"function": {"name": "emit_decision", "arguments": '{"q1": 0.5}'}}]},
        {"tool_calls": [{"function": {"arguments": {"q1": 0.5}}}]},
    ],
)
def test_the_object_is_found_wherever_it_is(message: Any) -> None:
    """As text, in a code fence, as arguments, as arguments that are no text."""
    assert read_object(said(message)) == {"q1": 0.5}


@pytest.mark.parametrize(
    "message",
    [{"content": None}, {"content": "sure!"}, {"content": "[1]"}, {"tool_calls": [{}]}],
)
def test_prose_is_no_object(message: Any) -> None:
    """Then the whole reply is malformed."""
    with pytest.raises(BadAnswer):
        read_object(said(message))


def test_a_refusal_is_no_object_and_no_failure() -> None:
    """It is every question's answer."""
    assert read_object(said({"content": None, "refusal": "no"})) is None
