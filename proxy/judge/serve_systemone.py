"""TypeSafe's `/v1/systemone`: a body in, a decision; a verdict in, a response."""

from collections.abc import Mapping

from proxy.errors import UsherError
from proxy.judge.questions import Choice, Noul, Question, Refused, Score
from proxy.judge.serve import (
    MAX_LEVELS,
    MAX_OPTIONS,
    MAX_QUESTIONS,
    Decision,
    Flaw,
    Invalid,
    Place,
    Served,
    fact_headers,
    find_trouble,
    read_model,
    read_object,
    read_text,
    respond,
    retry_headers,
)
from proxy.judge.systemone import encode_answer
from proxy.judge.verdict import Verdict
from proxy.wire import JSON, JSONObject


def read_request(body: bytes) -> Decision:
    """Check and read a request; unknown fields are ignored. Raises Invalid."""
    found = read_object(body)
    model = read_model(found)
    state = found.get("state")
    if not isinstance(state, str | dict | list):
        raise Invalid(
            Flaw(("state",), "State must be a string, an object or an array.", "state_type")
        )
    questions = found.get("questions")
    if not isinstance(questions, dict) or not questions:
        raise Invalid(Flaw(("questions",), "At least one question is required.", "missing"))
    if len(questions) > MAX_QUESTIONS:
        raise Invalid(Flaw(("questions",), f"At most {MAX_QUESTIONS} questions.", "too_long"))
    read = {name: _read_question(question, name) for name, question in questions.items()}
    return Decision(model, state, read)


def write_verdict(decision: Decision, verdict: Verdict, request_id: str) -> Served:
    """The response: every answer, or the reason why there is not every one."""
    facts = fact_headers(verdict, request_id)
    trouble = find_trouble(verdict)
    if trouble is not None:
        headers = [*facts, *retry_headers(trouble.retry_after)]
        return respond(trouble.status, _detail(trouble.kind, trouble.message), headers)
    answers: JSONObject = {}
    for name, question in decision.questions.items():
        answer = verdict.answers[name]
        if isinstance(answer, Refused):
            return respond(400, _detail("refusal", "The model declined to answer."), facts)
        answers[name] = encode_answer(question, answer)
    models = list(dict.fromkeys(verdict.models.values()))
    usage = {
        "input_tokens": verdict.tokens.prompt or 0,
        "output_tokens": verdict.tokens.completion or 0,
    }
    model = models[0] if models else decision.model
    return respond(200, {"model": model, "answers": answers, "usage": usage}, facts)


def write_flaws(invalid: Invalid, request_id: str) -> Served:
    """The 422 of a request that cannot be judged."""
    detail = [
        {"loc": ["body", *flaw.place], "msg": flaw.message, "type": flaw.kind}
        for flaw in invalid.flaws
    ]
    return respond(422, {"detail": detail}, [(b"x-typesafe-request-id", request_id.encode())])


def write_error(error: UsherError, request_id: str) -> Served:
    """One of the gateway's own refusals (key, size, drain) as TypeSafe's clients know them."""
    kind = "authentication_error" if error.status in {401, 403} else error.type
    headers = [
        (b"x-typesafe-request-id", request_id.encode()),
        *retry_headers(error.retry_after),
        *error.headers,
    ]
    return respond(error.status, _detail(kind, error.message), headers)


def _detail(kind: str, message: str) -> JSONObject:
    return {"detail": {"error_type": kind, "message": message}}


def _read_question(question: JSON, name: str) -> Question:
    place: Place = ("questions", name)
    if not name:
        raise Invalid(Flaw(place, "A question needs a name.", "string_too_short"))
    if not isinstance(question, dict):
        raise Invalid(Flaw(place, "A question must be an object.", "model_attributes_type"))
    instructions = read_text(question.get("instructions"), (*place, "instructions"))
    criteria = question.get("criteria")
    match question.get("type"):
        case "noul":
            return _read_noul(instructions, criteria, place)
        case "choice":
            return Choice(instructions, _read_options(criteria, (*place, "choice", "criteria")))
        case "score":
            return Score(instructions, _read_levels(criteria, (*place, "score", "criteria")))
    raise Invalid(Flaw((*place, "type"), "Must be noul, choice or score.", "union_tag_invalid"))


def _read_noul(instructions: JSON, criteria: JSON, place: Place) -> Noul:
    sides = {} if criteria is None else criteria
    if not isinstance(sides, Mapping):
        raise Invalid(Flaw((*place, "noul", "criteria"), "Must be an object.", "dict_type"))
    yes = read_text(sides.get("true"), (*place, "noul", "criteria", "true"))
    no = read_text(sides.get("false"), (*place, "noul", "criteria", "false"))
    if instructions is None and yes is None and no is None:
        raise Invalid(Flaw(place, "Instructions or a criterion are required.", "missing"))
    return Noul(instructions, yes, no)


def _read_options(criteria: JSON, place: Place) -> dict[str, JSON]:
    if not isinstance(criteria, dict):
        raise Invalid(Flaw(place, "Must be an object of options.", "dict_type"))
    if not 2 <= len(criteria) <= MAX_OPTIONS:
        raise Invalid(Flaw(place, f"Between 2 and {MAX_OPTIONS} options.", "length"))
    return {label: read_text(text, (*place, label)) for label, text in criteria.items()}


def _read_levels(criteria: JSON, place: Place) -> tuple[JSON, ...]:
    if not isinstance(criteria, list):
        raise Invalid(Flaw(place, "Must be a list of levels.", "list_type"))
    if not 2 <= len(criteria) <= MAX_LEVELS:
        raise Invalid(Flaw(place, f"Between 2 and {MAX_LEVELS} levels.", "length"))
    if any(level is None for level in criteria):
        raise Invalid(Flaw(place, "A level needs a description.", "missing"))
    return tuple(read_text(level, (*place, i)) for i, level in enumerate(criteria))
