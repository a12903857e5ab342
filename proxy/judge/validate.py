"""One answer as a server gave it in; an answer that can be trusted, or the reason why not, out.

Every question is judged by itself, so that one bad answer costs one answer. `null`, booleans and
numbers in strings are never probabilities.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proxy.judge.confidence import (
    HALF_UNIT,
    choice_confidence,
    clamp,
    expected_level,
    score_confidence,
    settle,
    sums_to_one,
)
from proxy.judge.questions import (
    Calibration,
    Choice,
    ChoiceAnswer,
    NoulAnswer,
    Score,
    ScoreAnswer,
)
from proxy.wire import JSON

_ROUNDING = 1e-6


class BadAnswer(Exception):
    """An answer that must not be used; the message names the rule, never the content."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How exact a backend's numbers are and what they are worth.

    `half_unit` is half of its last decimal, `slack` what a sum may be off beyond rounding;
    `confident` says whether a confidence may be computed from its probabilities.
    """

    calibration: Calibration = "native"
    half_unit: float = HALF_UNIT
    slack: float = 0.0
    confident: bool = True


NATIVE = Rules()


def check_noul(probability: JSON, rules: Rules = NATIVE) -> NoulAnswer:
    """A yes/no answer; raises BadAnswer."""
    return NoulAnswer(_probability(probability), rules.calibration)


def check_choice(
    question: Choice, label: JSON, probabilities: JSON, rules: Rules = NATIVE
) -> ChoiceAnswer:
    """A choice as a decision server states it; raises BadAnswer.

    Probabilities may be absent; then only the label is known and nothing is measured.
    """
    if not isinstance(label, str) or label not in question.options:
        raise BadAnswer("the label is none of the options")
    if probabilities is None:
        return ChoiceAnswer(label, calibration=rules.calibration)
    if not isinstance(probabilities, dict):
        raise BadAnswer("the probabilities are no object")
    answer = weigh_choice(question, probabilities, rules)
    if answer.label == label:
        return answer
    if answer.probabilities[answer.label] - answer.probabilities[label] > 2 * rules.half_unit:
        raise BadAnswer("the label is not the most probable option")
    return ChoiceAnswer(label, answer.probabilities, answer.confidence, rules.calibration)


def weigh_choice(
    question: Choice, probabilities: Mapping[str, JSON], rules: Rules = NATIVE
) -> ChoiceAnswer:
    """The choice that a distribution over exactly the question's options makes."""
    stated = {**question.options, **probabilities}  # in the order of the options
    if not len(question.options) == len(stated) == len(probabilities):
        raise BadAnswer("the probabilities are not those of the options")
    values = list(stated.values())
    numbers = _distribution(values, rules)
    settled = stated if numbers is values else dict(zip(stated, numbers, strict=True))
    confidence = choice_confidence(numbers) if rules.confident else None
    label = list(settled)[numbers.index(max(numbers))]
    return ChoiceAnswer(label, settled, confidence, rules.calibration)


def check_score(
    question: Score, score: JSON, probabilities: JSON, rules: Rules = NATIVE
) -> ScoreAnswer:
    """A rating as a decision server states it: levels keyed "0", "1", …; raises BadAnswer."""
    highest = len(question.levels) - 1
    stated = _number(score)
    if not -_ROUNDING <= stated <= highest + _ROUNDING:
        raise BadAnswer("the score is outside its levels")
    if probabilities is None:
        return ScoreAnswer(min(max(stated, 0.0), highest), calibration=rules.calibration)
    if not isinstance(probabilities, dict):
        raise BadAnswer("the probabilities are no object")
    keys = [str(level) for level in range(len(question.levels))]
    if set(probabilities) != set(keys):
        raise BadAnswer("the probabilities are not those of the levels")
    answer = weigh_score([probabilities[key] for key in keys], rules)
    if abs(answer.score - stated) > _score_slack(len(keys), rules.half_unit):
        raise BadAnswer("the score is not what the probabilities give")
    return answer


def weigh_score(probabilities: Sequence[JSON], rules: Rules = NATIVE) -> ScoreAnswer:
    """The rating that a distribution over the levels gives."""
    values = _distribution(probabilities, rules)
    confidence = score_confidence(values) if rules.confident else None
    return ScoreAnswer(expected_level(values), tuple(values), confidence, rules.calibration)


def _distribution(values: Sequence[JSON], rules: Rules) -> Sequence[float]:
    """The values themselves where nothing has to be done to them, as is nearly always."""
    plain = set(map(type, values)) == {float} and min(values) >= 0.0 and max(values) <= 1.0
    numbers = values if plain else [_probability(value) for value in values]
    total = math.fsum(numbers)
    if abs(total - 1) < 1e-9:
        return numbers
    close = total > 0 and abs(total - 1) <= rules.slack
    if not close and not sums_to_one(numbers, rules.half_unit):
        raise BadAnswer("the probabilities do not sum to one")
    return settle(numbers, rules.half_unit)


def _probability(value: JSON) -> float:
    number = _number(value)
    if not -_ROUNDING <= number <= 1 + _ROUNDING:
        raise BadAnswer("a probability is outside 0 and 1")
    return clamp(number)


def _number(value: JSON) -> float:
    if type(value) is not float and type(value) is not int:  # a bool is no number
        raise BadAnswer("a number is missing")
    try:
        number = float(value)
    except OverflowError:  # a whole number of hundreds of digits
        number = math.inf
    if not math.isfinite(number):
        raise BadAnswer("a number is not finite")
    return number


def _score_slack(levels: int, half_unit: float) -> float:
    """How far rounding alone can move Σ i·p away from a rounded score."""
    return 0.02 + half_unit * (1 + levels * (levels - 1) / 2)
