"""Questions and a state of any size in; what fits a backend's limits, and the way back, out."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec
import orjson
from msgspec.structs import replace

from proxy.judge.confidence import choice_confidence
from proxy.judge.questions import Answer, Choice, ChoiceAnswer, Question, State, flat, shuffled
from proxy.tools.rank import Document, LexicalIndex, build_lexical
from proxy.wire import JSON

NONE_OF_THESE = "none_of_these"
_NONE_TEXT = "None of the other options fits."
_CAPS = (4_000, 2_000, 1_000, 500, 250)
KEPT_CHARS = 4_000
"""A ranker of so little text is kept: an application asks its few own choices in every turn."""


class Fitted(msgspec.Struct, frozen=True):
    """A question as it is sent; `hidden` options were cut, `added` is a "none" that we put in."""

    sent: Question
    hidden: tuple[str, ...] = ()
    added: str | None = None


def fit(question: Question, most: int, state: State, seed: int) -> Fitted:
    """Cut a choice to at most `most` options and put them in their replayable order."""
    if not isinstance(question, Choice):
        return Fitted(question)
    if len(question.options) <= most:
        return Fitted(_ordered(question, question.options, seed))
    none = question.none or free_label(question.options)
    labels = [label for label in question.options if label != none]
    scores = rank_options(question, state)
    best = sorted(labels, key=lambda label: -scores.get(label, 0.0))[: most - 1]
    shown = set(best)
    hidden = tuple(label for label in labels if label not in shown)
    full = replace(question, options={none: _NONE_TEXT, **question.options}, none=none)
    added = None if none == question.none else none
    return Fitted(_ordered(full, [*best, none], seed), hidden, added)


def restore(question: Question, fitted: Fitted, answer: Answer) -> Answer:
    """An answer to the sent question as an answer to the original one.

    "None of the shown" means one of the hidden, so its mass is shared between them; where the
    question had its own "none", the hidden options simply got nothing.
    """
    if not isinstance(question, Choice) or not isinstance(answer, ChoiceAnswer):
        return answer
    if not answer.probabilities or not fitted.hidden:
        return answer
    weights = dict(answer.probabilities)
    spare = weights.pop(fitted.added, 0.0) if fitted.added is not None else 0.0
    weights |= dict.fromkeys(fitted.hidden, spare / max(1, len(fitted.hidden)))
    ordered = {label: weights[label] for label in question.options}
    label = max(ordered, key=ordered.__getitem__) if fitted.added == answer.label else answer.label
    confidence = answer.confidence
    if confidence is not None and fitted.added is not None:
        confidence = choice_confidence(list(ordered.values()))
    return replace(answer, label=label, probabilities=ordered, confidence=confidence)


def clip_state(state: State, most: int) -> State:
    """A state within that many characters: long texts keep head and tail, all of them alike."""
    if _size(state) <= most:
        return state
    for cap in _CAPS:
        shorter: State = _clip_texts(state, cap)
        if _size(shorter) <= most:
            return shorter
    return clip(flat(state), most)


def clip(text: str, most: int) -> str:
    """Head and tail of a text; what a user wants stands at either end more often than between."""
    if len(text) <= most:
        return text
    tail = most // 3
    return f"{text[: most - tail]} […] {text[len(text) - tail :]}"


def latest_text(state: State) -> str:
    """The part of a state that says what is wanted now."""
    if isinstance(state, dict):
        for name in ("latest", "request"):
            if isinstance(state.get(name), str):
                return str(state[name])
    return flat(state)


def _ordered(question: Choice, labels: Iterable[str], seed: int) -> Choice:
    options = question.options
    order = shuffled(labels, seed, last=question.none)
    return replace(question, options={label: options[label] for label in order})


def rank_options(question: Choice, state: State) -> Mapping[str, float]:
    """What our ranker thinks of a choice's labels: handed in with the question, or found now."""
    if question.prior is not None:
        return question.prior
    options = question.options.items()
    texts = tuple((label, flat(text)) for label, text in options if label != question.none)
    small = sum(len(label) + len(text) for label, text in texts) <= KEPT_CHARS
    index = _kept_index(texts) if small else _index(texts)
    return {texts[hit.position][0]: hit.score for hit in index.rank(latest_text(state), len(texts))}


def _index(texts: Sequence[tuple[str, str]]) -> LexicalIndex:
    return build_lexical([Document(label, "", text, None) for label, text in texts])


@lru_cache(maxsize=32)
def _kept_index(texts: tuple[tuple[str, str], ...]) -> LexicalIndex:
    return _index(texts)


def free_label(taken: Mapping[str, object]) -> str:
    """A label for "none of these" that no option has."""
    label = NONE_OF_THESE
    while label in taken:
        label += "_"
    return label


def _size(state: State) -> int:
    return len(state) if isinstance(state, str) else len(orjson.dumps(state))


def _clip_texts(value: JSON, cap: int) -> JSON:
    match value:
        case str():
            return clip(value, cap)
        case dict():
            return {name: _clip_texts(inner, cap) for name, inner in value.items()}
        case list():
            return [_clip_texts(inner, cap) for inner in value]
    return value
