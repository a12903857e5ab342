"""The System One dialect (TypeSafe, OpenRouter, Cloudflare, Ollama, llama.cpp, vLLM …).

Neutral questions go in and the request's JSON comes out; a reply's JSON goes in and answers come
out. Nothing here knows a URL.
"""

from collections.abc import Mapping

from proxy.judge.failures import Failed, Failure
from proxy.judge.questions import Answer, Choice, Noul, Question, Questions, Score, State, asked
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
            return encoded | ({"criteria": criteria} if criteria else {})
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


def decode(body: JSON, questions: Questions, rules: Rules = NATIVE) -> Reading:
    """Read a reply; ids that were not asked and unknown answer types are ignored.

    Raises Failed(MALFORMED) when there is no `answers` map at all.
    """
    answers = body.get("answers") if isinstance(body, dict) else None
    if not isinstance(answers, Mapping):
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


def _decode_answer(question: Question, answer: JSON, rules: Rules) -> Answer:
    if not isinstance(answer, Mapping):
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
    sides = {"true": question.yes, "false": question.no}
    if all(side is None for side in sides.values()):
        return {}
    filled = {name: default if side is None else side for name, side in sides.items()}
    return {name: side for name, side in filled.items() if side is not None}
