"""What a judge can be asked and what it can answer: plain values that know no wire format.

These and the other values of a judgment are msgspec structs: a turn makes fifty of them, at 0.1 µs
each instead of the microsecond or two of a frozen dataclass.
"""

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

import msgspec
import orjson
import xxhash

from proxy.wire import JSON, JSONObject

Text: TypeAlias = str | JSONObject | list[JSON]
"""Instructions and descriptions may be structured, as in TypeSafe's API."""

State: TypeAlias = str | JSONObject | list[JSON]
"""What the questions are about; always data, never instructions."""

Calibration: TypeAlias = Literal["native", "token", "verbalized", "embedded", "none"]
"""Where a probability comes from: a decision model, label tokens, a model's own words, our
rankers and gate model, or nowhere (one-hot)."""


class Noul(msgspec.Struct, frozen=True):
    """A yes/no question; `embedded` names the built-in model that can answer it, if one can."""

    instructions: Text | None
    yes: Text | None = None
    no: Text | None = None
    embedded: str | None = None


class Choice(msgspec.Struct, frozen=True):
    """One of several labels; `none` is the label that means "no other label fits".

    `prior` holds what our own ranker thinks of the labels (any scale, higher is better); it is
    used to cut long lists and by the embedded backend, and never sent.
    """

    instructions: Text | None
    options: Mapping[str, Text | None]
    none: str | None = None
    prior: Mapping[str, float] | None = None


class Score(msgspec.Struct, frozen=True):
    """A rating on ordered levels, the lowest first."""

    instructions: Text | None
    levels: tuple[Text, ...]


Question: TypeAlias = Noul | Choice | Score
Questions: TypeAlias = Mapping[str, Question]


class NoulAnswer(msgspec.Struct, frozen=True):
    """How probable a yes is."""

    probability: float
    calibration: Calibration = "native"


class ChoiceAnswer(msgspec.Struct, frozen=True):
    """The chosen label; probabilities are empty and confidence is None when not measured."""

    label: str
    probabilities: Mapping[str, float] = {}
    confidence: float | None = None
    calibration: Calibration = "native"


class ScoreAnswer(msgspec.Struct, frozen=True):
    """The expected level; probabilities are empty and confidence is None when not measured."""

    score: float
    probabilities: tuple[float, ...] = ()
    confidence: float | None = None
    calibration: Calibration = "native"


class Refused(msgspec.Struct, frozen=True):
    """The model declined this question; the others may still have answers."""


Answer: TypeAlias = NoulAnswer | ChoiceAnswer | ScoreAnswer | Refused


def asked(question: Question) -> Text:
    """The instructions, or what the question asks without any: many servers insist on some."""
    if question.instructions is not None:
        return question.instructions
    match question:
        case Noul():
            return "Is this true of the state?"
        case Choice():
            return "Which option fits the state best?"
        case Score():
            return "Which level fits the state best?"


def canonical(question: Question) -> JSONObject:
    """The meaning of a question as JSON, without what is never sent."""
    match question:
        case Noul():
            return {"noul": question.instructions, "yes": question.yes, "no": question.no}
        case Choice():
            return {"choice": question.instructions, "options": dict(question.options)}
        case Score():
            return {"score": question.instructions, "levels": list(question.levels)}


def fingerprint(*values: JSON) -> str:
    """Hash JSON values so that equal content gives equal text, whatever the key order."""
    return xxhash.xxh3_128_hexdigest(orjson.dumps(values, option=orjson.OPT_SORT_KEYS))


def question_hash(question: Question) -> str:
    """The hash that a calibrated threshold belongs to: other wording, other threshold."""
    return fingerprint(canonical(question))


def shuffled(labels: Iterable[str], seed: int, last: str | None = None) -> list[str]:
    """Labels in an order that depends on seed and content only, so a replay sees the same one.

    A judge that favours the first option would otherwise favour the first tool of the catalogue.
    """
    order = sorted(labels, key=lambda label: xxhash.xxh3_64_digest(label.encode(), seed))
    if last in order:
        order.remove(last)
        order.append(last)
    return order


def flat(text: Text | None) -> str:
    """A text for places that only take strings; structure becomes JSON."""
    if text is None:
        return ""
    return text if isinstance(text, str) else orjson.dumps(text).decode()
