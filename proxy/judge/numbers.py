"""Decisions by numbers: one request for all questions; the model writes its probabilities down.

They go into one flat JSON object, as structured output or as the arguments of a forced tool call;
flat, because a model that mangles nested arguments has nothing to mangle here.
"""

from collections.abc import Mapping, Sequence

import orjson

from proxy.judge.emulate import Asked, message, messages, refuses, weigh
from proxy.judge.questions import Answer, Noul, Refused, State, asked, flat
from proxy.judge.validate import BadAnswer, Rules, check_noul
from proxy.wire import JSON, JSONObject

TOOL_NAME = "emit_decision"
_RULE = (
    "Give your honest probabilities as numbers between 0 and 1. The numbers of the options of one "
    "question sum to 1."
)


def numbers_request(state: State, questions: Sequence[Asked], *, as_tool: bool) -> JSONObject:
    """The one request for all questions."""
    text = "\n\n".join([*_number_texts(questions), _RULE])
    schema = number_schema(questions)
    body: JSONObject = {"messages": messages(state, text), "temperature": 0}
    if as_tool:
        function = {"name": TOOL_NAME, "parameters": schema, "strict": True}
        choice = {"type": "function", "function": {"name": TOOL_NAME}}
        return body | {"tools": [{"type": "function", "function": function}], "tool_choice": choice}
    wanted = {"name": "decision", "strict": True, "schema": schema}
    return body | {"response_format": {"type": "json_schema", "json_schema": wanted}}


def number_schema(questions: Sequence[Asked]) -> JSONObject:
    """A closed object with one number per probability; ranges are checked here, not there."""
    names = [name for keys in number_keys(questions).values() for name in keys]
    return {
        "type": "object",
        "properties": {name: {"type": "number"} for name in names},
        "required": names,
        "additionalProperties": False,
    }


def number_keys(questions: Sequence[Asked]) -> Mapping[str, Sequence[str]]:
    """The keys that a question's numbers have in the object: `q1`, or `q1_o1`, `q1_o2`, …."""
    return {
        one.name: [f"q{n}"]
        if isinstance(one.question, Noul)
        else [f"q{n}_o{position}" for position in range(1, len(one.options) + 1)]
        for n, one in enumerate(questions, 1)
    }


def read_object(body: JSON) -> JSONObject | None:
    """The object that the model wrote, wherever it wrote it; None is a refusal."""
    if refuses(body):
        return None
    said = message(body)
    calls = said.get("tool_calls")
    if isinstance(calls, list) and calls and isinstance(calls[0], dict):
        function = calls[0].get("function")
        text = function.get("arguments") if isinstance(function, dict) else None
    else:
        text = said.get("content")
    found = text if isinstance(text, dict) else _parse(text)
    if not isinstance(found, dict):
        raise BadAnswer("the reply holds no object")
    return found


def read_numbers(
    numbers: JSONObject | None, one: Asked, keys: Sequence[str], rules: Rules
) -> Answer:
    """The answer that the written probabilities give; raises BadAnswer."""
    if numbers is None:
        return Refused()
    if isinstance(one.question, Noul):
        return check_noul(numbers.get(keys[0]), rules)
    return weigh(one, [numbers.get(key) for key in keys], rules)


def _number_texts(questions: Sequence[Asked]) -> list[str]:
    keys = number_keys(questions)
    texts = []
    for one in questions:
        lines = [flat(asked(one.question))]
        if isinstance(one.question, Noul):
            lines += [option.text for option in one.options]
            lines.append(f"{keys[one.name][0]}: the probability of yes")
        else:
            pairs = zip(keys[one.name], one.options, strict=True)
            lines += [f"{key}: {option.text}" for key, option in pairs]
        texts.append("\n".join(lines))
    return texts


def _parse(text: JSON) -> JSON:
    """JSON, also inside a code fence."""
    if not isinstance(text, str):
        return None
    inner = text.strip()
    if inner.startswith("```"):
        inner = inner.strip("`").removeprefix("json").strip()
    try:
        return orjson.loads(inner)
    except orjson.JSONDecodeError:
        return None
