"""The System One dialect (TypeSafe, OpenRouter, Cloudflare, Ollama, llama.cpp, vLLM …).

Neutral questions go in and the request's JSON comes out; a reply's JSON goes in and answers come
out. Nothing here knows a URL.
"""

from collections.abc import Iterable

from proxy.judge.confidence import choice_confidence, expected_level, score_confidence
from proxy.judge.failures import Failed, Failure
from proxy.judge.questions import (
    Answer,
    Choice,
    ChoiceAnswer,
    Noul,
    NoulAnswer,
    Question,
    Questions,
    Score,
    ScoreAnswer,
    State,
    asked,
)
from proxy.judge.reading import Reading, read_each, text_or_none
from proxy.judge.validate import NATIVE, BadAnswer, Rules, check_choice, check_noul, check_score
from proxy.ledger.usage import read_usage
from proxy.wire import JSON, JSONObject

ELSE = "Anything else."


def encode(
    model: str, state: State, questions: Questions, *, both_sides: bool = False
) -> JSONObject:
    """The request body; `both_sides` is for servers that want neither or both noul criteria."""
    return {
        "model": model,
        "state": state,
        "questions": {
            name: encode_question(question, both_sides=both_sides)
            for name, question in questions.items()
        },
    }


def encode_question(question: Question, *, both_sides: bool = False) -> JSONObject:
    """One question of the `questions` map."""
    match question:
        case Noul():
            encoded: JSONObject = {"type": "noul", "instructions": asked(question)}
            criteria = _criteria(question, ELSE if both_sides else None)
            if criteria:
                encoded["criteria"] = criteria
            return encoded
        case Choice():
            return {
                "type": "choice",
                "instructions": asked(question),
                "criteria": dict(question.options),
            }
        case Score():
            return {
                "type": "score",
                "instructions": asked(question),
                "criteria": list(question.levels),
            }


def decode_question(question: JSON) -> Question:
    """The way back, for recordings; raises KeyError, TypeError or ValueError when it is none."""
    text, criteria = question.get("instructions"), question.get("criteria")
    match question["type"]:
        case "noul":
            sides = criteria or {}
            return Noul(text, sides.get("true"), sides.get("false"))
        case "choice":
            return Choice(text, dict(criteria))
        case "score":
            return Score(text, tuple(criteria))
    raise ValueError("unknown question type")


def encode_answer(question: Question, answer: Answer) -> JSONObject | None:
    """An answer in this dialect; None when the dialect has no word for it.

    Confidence is always there, because clients refuse null; it is 0 when nothing was measured.
    """
    match question, answer:
        case Noul(), NoulAnswer():
            return {"type": "noul", "noul": _round(answer.probability)}
        case Choice(), ChoiceAnswer():
            weights = answer.probabilities or one_hot(question.options, answer.label)
            sure = choice_confidence(list(weights.values())) if answer.probabilities else 0.0
            return {
                "type": "choice",
                "choice": answer.label,
                "confidence": _round(sure),
                "probabilities": {label: _round(p) for label, p in weights.items()},
            }
        case Score(), ScoreAnswer():
            levels = answer.probabilities or split_level(answer.score, len(question.levels))
            sure = score_confidence(levels) if answer.probabilities else 0.0
            return {
                "type": "score",
                "score": _round(expected_level(levels)),
                "confidence": _round(sure),
                "legend": {str(i): level for i, level in enumerate(question.levels)},
                "probabilities": {str(i): _round(p) for i, p in enumerate(levels)},
            }
    return None


def one_hot(labels: Iterable[str], chosen: str) -> dict[str, float]:
    """Certainty of a label whose probability nobody measured."""
    return {label: float(label == chosen) for label in labels}


def split_level(score: float, levels: int) -> list[float]:
    """The narrowest distribution over the levels that has this expected value."""
    low = min(int(score), levels - 1)
    weights = [0.0] * levels
    weights[low] = 1 - (score - low)
    if low + 1 < levels:
        weights[low + 1] = score - low
    return weights


def decode(body: JSON, questions: Questions, rules: Rules = NATIVE) -> Reading:
    """Read a reply; ids that were not asked and unknown answer types are ignored.

    Raises Failed(MALFORMED) when there is no `answers` map at all.
    """
    answers = body.get("answers") if isinstance(body, dict) else None
    if not isinstance(answers, dict):
        raise Failed(Failure.MALFORMED)

    def read(name: str, question: Question) -> Answer:
        return _decode_answer(question, answers.get(name), rules)

    good, problems = read_each(questions, read)
    return Reading(
        answers=good,
        problems=problems,
        model=text_or_none(body.get("model")),
        tokens=read_usage(body.get("usage")),
    )


def _round(value: float) -> float:
    """Enough decimals for every client's check of the sum, even of 255 options."""
    return round(value, 6)


def _decode_answer(question: Question, answer: JSON, rules: Rules) -> Answer:
    if not isinstance(answer, dict):
        raise BadAnswer("there is no answer")
    match question, answer.get("type"):
        case Noul(), "noul":
            return check_noul(answer.get("noul"), rules)
        case Choice() as choice, "choice":
            return check_choice(choice, answer.get("choice"), answer.get("probabilities"), rules)
        case Score() as score, "score":
            return check_score(score, answer.get("score"), answer.get("probabilities"), rules)
    raise BadAnswer("the answer has another type than the question")


def _criteria(question: Noul, default: str | None) -> JSONObject:
    yes, no = question.yes, question.no
    if yes is None and no is None:
        return {}
    sides = {"true": default if yes is None else yes, "false": default if no is None else no}
    return {name: side for name, side in sides.items() if side is not None}
