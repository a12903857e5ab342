"""The OpenAI dialect of `/v1/decisions`: neutral questions to JSON, its replies to answers."""

from collections.abc import Mapping

import orjson

from proxy.judge.failures import Failed, Failure
from proxy.judge.questions import (
    Answer,
    Choice,
    Noul,
    Question,
    Questions,
    Refused,
    Score,
    State,
    asked,
    flat,
)
from proxy.judge.reading import Reading, read_each, text_or_none
from proxy.judge.validate import NATIVE, BadAnswer, Rules, check_choice, check_noul, check_score
from proxy.ledger.usage import read_usage
from proxy.wire import JSON, JSONObject


def encode(model: str, state: State, questions: Questions) -> JSONObject:
    """The request body; a structured state becomes one JSON text, so that it stays data."""
    return {
        "model": model,
        "input": state if isinstance(state, str) else orjson.dumps(state).decode(),
        "questions": [encode_question(name, question) for name, question in questions.items()],
    }


def encode_question(name: str, question: Question) -> JSONObject:
    """One item of the `questions` list; a predicate's criteria join its instructions."""
    match question:
        case Noul():
            return {"type": "predicate", "name": name, "instructions": _predicate(question)}
        case Choice():
            return {
                "type": "choice",
                "name": name,
                "instructions": flat(asked(question)),
                "choices": [
                    {"value": label, **({"description": flat(text)} if text is not None else {})}
                    for label, text in question.options.items()
                ],
            }
        case Score():
            return {
                "type": "score",
                "name": name,
                "instructions": flat(asked(question)),
                "levels": [{"label": flat(level)} for level in question.levels],
            }


def decode(body: JSON, questions: Questions, rules: Rules = NATIVE) -> Reading:
    """Read a reply; raises Failed(MALFORMED) when there is no `answers` list at all."""
    answers = body.get("answers") if isinstance(body, dict) else None
    if not isinstance(answers, list):
        raise Failed(Failure.MALFORMED)
    named = {text_or_none(a.get("name")): a for a in answers if isinstance(a, Mapping)}

    def read(name: str, question: Question) -> Answer:
        return _decode_answer(question, named.get(name), rules)

    good, problems = read_each(questions, read)
    return Reading(
        answers=good,
        problems=problems,
        model=text_or_none(body.get("model")),
        tokens=read_usage(body.get("usage")),
    )


def _decode_answer(question: Question, answer: JSON, rules: Rules) -> Answer:
    if answer is None:
        raise BadAnswer("there is no answer")
    match question, answer.get("type"):
        case _, "refusal":
            return Refused()
        case Noul(), "predicate":
            return check_noul(answer.get("probability"), rules)
        case Choice() as choice, "choice":
            weights = _by_value(answer.get("probabilities"))
            return check_choice(choice, answer.get("choice"), weights, rules)
        case Score() as score, "score":
            levels = _by_value(answer.get("probabilities"))
            weights = None if levels is None else {str(key): p for key, p in levels.items()}
            return check_score(score, answer.get("score"), weights, rules)
    raise BadAnswer("the answer has another type than the question")


def _by_value(items: JSON) -> dict[JSON, JSON] | None:
    if items is None:
        return None
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise BadAnswer("the probabilities are no list of objects")
    try:
        return {item.get("value"): item.get("probability") for item in items}
    except TypeError:
        raise BadAnswer("a probability has no name") from None


def _predicate(question: Noul) -> str:
    sides = [("Yes when", question.yes), ("No when", question.no)]
    lines = [flat(asked(question))]
    lines += [f"{lead}: {flat(side)}" for lead, side in sides if side is not None]
    return "\n".join(lines)
