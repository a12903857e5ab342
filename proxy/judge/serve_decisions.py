"""OpenAI's `/v1/decisions`: a body in, a decision; a verdict in, a response."""

from proxy.errors import UsherError
from proxy.judge.confidence import choice_confidence, score_confidence
from proxy.judge.questions import (
    Answer,
    Choice,
    ChoiceAnswer,
    Noul,
    NoulAnswer,
    Question,
    Score,
    ScoreAnswer,
    State,
)
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
    respond,
    retry_headers,
)
from proxy.judge.systemone import one_hot, split_level
from proxy.judge.verdict import Verdict
from proxy.wire import JSON, JSONObject

TEXT_PARTS = ("input_text", "output_text", "text")


def read_request(body: bytes) -> Decision:
    """Check and read a request; raises Invalid."""
    found = read_object(body)
    model = read_model(found)
    state = _read_input(found.get("input"))
    listed = found.get("questions")
    if not isinstance(listed, list) or not 1 <= len(listed) <= MAX_QUESTIONS:
        raise Invalid(Flaw(("questions",), f"Between 1 and {MAX_QUESTIONS} questions.", "length"))
    questions: dict[str, Question] = {}
    names: dict[str, str | None] = {}
    labels: dict[str, dict[str, str | bool]] = {}
    for position, question in enumerate(listed):
        key, place = str(position), ("questions", position)
        if not isinstance(question, dict):
            raise Invalid(Flaw(place, "A question must be an object.", "type"))
        names[key] = _read_name(question.get("name"), list(names.values()), place)
        labels[key] = _read_values(question, place)
        questions[key] = _read_question(question, labels[key], place)
    return Decision(model, state, questions, names, labels)


def write_verdict(decision: Decision, verdict: Verdict, request_id: str) -> Served:
    """The response; a question without an answer is a refusal as long as others have one."""
    facts = fact_headers(verdict, request_id)
    trouble = find_trouble(verdict)
    if trouble is not None and not verdict.answers:
        headers = [*facts, *retry_headers(trouble.retry_after)]
        return respond(trouble.status, _error(trouble.message, trouble.kind), headers)
    answers = [_write_answer(decision, key, verdict.answers.get(key)) for key in decision.questions]
    models = list(dict.fromkeys(verdict.models.values()))
    body = {
        "model": models[0] if models else decision.model,
        "answers": answers,
        "usage": _usage(verdict),
    }
    return respond(200, body, facts)


def write_flaws(invalid: Invalid, request_id: str) -> Served:
    """The 400 of a request that cannot be judged."""
    flaw = invalid.flaws[0]
    words = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in flaw.place]
    param = "".join(words).removeprefix(".") or None
    body = _error(flaw.message, "invalid_request_error", param, flaw.kind)
    return respond(400, body, [(b"x-request-id", request_id.encode())])


def write_error(error: UsherError, request_id: str) -> Served:
    """One of the gateway's own refusals."""
    headers = [
        (b"x-request-id", request_id.encode()),
        *retry_headers(error.retry_after),
        *error.headers,
    ]
    return respond(error.status, error.body(), headers)


def _error(
    message: str, kind: str, param: str | None = None, code: str | None = None
) -> JSONObject:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _read_name(name: JSON, taken: list[str | None], place: Place) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str) or not name or name in taken:
        raise Invalid(Flaw((*place, "name"), "A name must be a text of its own.", "name"))
    return name


def _read_question(question: JSONObject, labels: dict[str, str | bool], place: Place) -> Question:
    instructions = _read_parts(question.get("instructions"), (*place, "instructions"))
    match question.get("type"):
        case "predicate":
            return Noul(instructions)
        case "choice":
            texts = (choice.get("description") for choice in question["choices"])
            return Choice(instructions, dict(zip(labels, texts, strict=True)))
        case "score":
            return Score(instructions, _read_levels(question.get("levels"), (*place, "levels")))
    kinds = "Must be predicate, choice or score."
    raise Invalid(Flaw((*place, "type"), kinds, "type"))


def _read_values(question: JSONObject, place: Place) -> dict[str, str | bool]:
    """A choice's values, or a rating's labels, under labels of ours.

    `true` and `"true"` are different values.
    """
    if question.get("type") == "score":
        levels = question.get("levels")
        return _level_labels(levels if isinstance(levels, list) else [])
    if question.get("type") != "choice":
        return {}
    choices = question.get("choices")
    if not isinstance(choices, list) or not 2 <= len(choices) <= MAX_OPTIONS:
        flaw = f"Between 2 and {MAX_OPTIONS} choices."
        raise Invalid(Flaw((*place, "choices"), flaw, "length"))
    found: dict[str, str | bool] = {}
    for i, choice in enumerate(choices):
        value = choice.get("value") if isinstance(choice, dict) else None
        label = f"{str(value).lower()} (boolean)" if isinstance(value, bool) else value
        if not isinstance(value, str | bool) or not isinstance(label, str) or label in found:
            flaw = "A value must be a text or a boolean of its own."
            raise Invalid(Flaw((*place, "choices", i, "value"), flaw, "value"))
        found[label] = value
    return found


def _level_labels(levels: list[JSON]) -> dict[str, str | bool]:
    return {
        str(i): str(level.get("label")) for i, level in enumerate(levels) if isinstance(level, dict)
    }


def _read_levels(levels: JSON, place: Place) -> tuple[str, ...]:
    if not isinstance(levels, list) or not 2 <= len(levels) <= MAX_LEVELS:
        raise Invalid(Flaw(place, f"Between 2 and {MAX_LEVELS} levels.", "length"))
    found = []
    for i, level in enumerate(levels):
        label = level.get("label") if isinstance(level, dict) else None
        if not isinstance(label, str):
            raise Invalid(Flaw((*place, i, "label"), "A level needs a label.", "label"))
        text = level.get("description")
        found.append(f"{label}: {text}" if text else label)
    return tuple(found)


def _read_input(value: JSON) -> State:
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        raise Invalid(Flaw(("input",), "Input must be a text or a list of items.", "input"))
    called: set[JSON] = set()
    return [_read_item(item, called, ("input", i)) for i, item in enumerate(value)]


def _read_item(item: JSON, called: set[JSON], place: Place) -> JSONObject:
    if not isinstance(item, dict):
        raise Invalid(Flaw(place, "An item must be an object.", "type"))
    kind, call_id = item.get("type", "message"), item.get("call_id")
    if kind in ("function_call", "custom_tool_call") and isinstance(call_id, str):
        called.add(call_id)
        said = item.get("arguments", item.get("input"))
        return {"tool_call": item.get("name"), "arguments": said}
    if kind in ("function_call_output", "custom_tool_call_output") and isinstance(call_id, str):
        if call_id not in called:
            raise Invalid(Flaw((*place, "call_id"), "No call has this id.", "call_id"))
        return {"tool_result": _read_parts(item.get("output"), (*place, "output"))}
    if kind != "message" or not isinstance(item.get("role"), str):
        raise Invalid(Flaw((*place, "type"), "Items of this type are not supported.", "type"))
    return {"role": item["role"], "content": _read_parts(item.get("content"), (*place, "content"))}


def _read_parts(value: JSON, place: Place) -> JSON:
    """A text, or the texts and JSON of a list of parts; images cannot be judged here."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        raise Invalid(Flaw(place, "Must be a text or a list of parts.", "type"))
    found = [_read_part(part, (*place, i)) for i, part in enumerate(value)]
    return "\n".join(found) if all(isinstance(part, str) for part in found) else found


def _read_part(part: JSON, place: Place) -> JSON:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in TEXT_PARTS and isinstance(part.get("text"), str):
        return part["text"]
    if kind == "refusal" and isinstance(part.get("refusal"), str):
        return part["refusal"]
    if kind == "input_json" and isinstance(part.get("data"), dict | list):
        return part["data"]
    raise Invalid(Flaw((*place, "type"), "Parts of this type are not supported.", "type"))


def _write_answer(decision: Decision, key: str, answer: Answer | None) -> JSONObject:
    question, name = decision.questions[key], decision.names[key]
    match question, answer:
        case Noul(), NoulAnswer():
            return {"type": "predicate", "name": name, "probability": answer.probability}
        case Choice(), ChoiceAnswer():
            weights = answer.probabilities or one_hot(question.options, answer.label)
            sure = choice_confidence(list(weights.values())) if answer.probabilities else 0.0
            values = decision.labels[key]
            return {
                "type": "choice",
                "name": name,
                "choice": values[answer.label],
                "confidence": sure,
                "probabilities": [
                    {"value": values[label], "probability": p} for label, p in weights.items()
                ],
            }
        case Score(), ScoreAnswer():
            levels = answer.probabilities or split_level(answer.score, len(question.levels))
            sure = score_confidence(levels) if answer.probabilities else 0.0
            return {
                "type": "score",
                "name": name,
                "score": answer.score,
                "confidence": sure,
                "probabilities": [
                    {"label": decision.labels[key][str(i)], "probability": p, "value": i}
                    for i, p in enumerate(levels)
                ],
            }
    return {"type": "refusal", "name": name}


def _usage(verdict: Verdict) -> JSONObject:
    read, wrote = verdict.tokens.prompt or 0, verdict.tokens.completion or 0
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": wrote,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + wrote,
    }
