"""One reply, or several, as one reading."""

from proxy.judge.questions import Answer, Noul, NoulAnswer, Question
from proxy.judge.reading import Reading, merge, read_each, text_or_none
from proxy.judge.validate import BadAnswer
from proxy.ledger.usage import Tokens

ONE = NoulAnswer(0.5)


def test_outcome_says_how_much_came_back() -> None:
    """Everything, some of it, or nothing usable."""
    assert Reading({"a": ONE}).outcome == "ok"
    assert Reading({"a": ONE}, {"b": "why"}).outcome == "partial"
    assert Reading({}, {"b": "why"}).outcome == "malformed"


def test_one_bad_answer_costs_one_answer() -> None:
    """The others are read."""

    def read(name: str, _: Question) -> Answer:
        if name == "bad":
            raise BadAnswer("a number is missing")
        return ONE

    good, problems = read_each({"good": Noul("?"), "bad": Noul("?")}, read)
    assert good == {"good": ONE}
    assert problems == {"bad": "a number is missing"}


def test_half_a_surrogate_pair_is_no_text() -> None:
    """It could not be written down again."""
    assert text_or_none("jev \U0001f600") == "jev \U0001f600"
    assert text_or_none("jev \ud83d") is None


def test_merging_sums_known_tokens_and_forgets_solved_problems() -> None:
    """A question that a second request answered is no problem any more."""
    first = Reading({"a": ONE}, {"b": "why"}, "m", Tokens(prompt=10))
    second = Reading({"b": ONE}, tokens=Tokens(prompt=5, completion=2))
    both = merge([first, second])
    assert both.answers == {"a": ONE, "b": ONE}
    assert both.problems == {}
    assert (both.model, both.tokens.prompt, both.tokens.completion) == ("m", 15, 2)
    assert both.tokens.cached is None
    assert merge([first]) is first


def test_foreign_text_is_text_or_unknown() -> None:
    """A model name that is a number is none."""
    assert text_or_none("x") == "x"
    assert text_or_none(3) is None
