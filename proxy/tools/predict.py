"""What was just said and called goes in; the tools the turn will probably need come out."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proxy.settings import Prediction
from proxy.tools.query import WEAK_TERMS
from proxy.tools.rank import Document, Hit, Index, Scores, select
from proxy.tools.smalltalk import is_consent, is_small_talk
from proxy.tools.text import sentences, words
from proxy.tools.tokens import estimate_tokens

PREVIOUS, ASSISTANT = 0.4, 0.3
"""Weight of the previous user message and of the last reply beside a newest message of no words."""
CLEAR_WORDS = 4
"""From so many words on, a message stands for itself."""
MIN_MENTION = 4
TEMPERATURE, MASS = 0.7, 0.9
"""Softmax over scores in standard deviations: the shortlist ends where it reaches this mass."""
LEAST_NEED, COVERAGE_NEED = 0.275, 0.2
"""Below this closeness + 0.2 · coverage a message needs no tool of the catalogue."""
ROUND_TOKENS = 3_000
"""What a search round costs; a schema of many tokens must be likelier than a small one."""
CONSIDERED = 32
"""So many leaders share the probability."""
_JOINT = re.compile(
    r"\b(?:and|then|also|after|und|dann|danach|y|luego|et|puis)\b|[,;、，]|然后|再|してから|その後|それから",
    re.IGNORECASE,
)
"""What joins two requests in one message."""


@dataclass(frozen=True, slots=True)
class Cue:
    """The end of a conversation: texts, tools called so far, tools whose results arrived."""

    newest_user: str
    previous_user: str
    last_assistant: str
    called: tuple[str, ...]
    results: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Predicted:
    """Tools to load, best first; `mentioned` are those the user named.

    `scores` are probabilities among the leading tools; `reason` says why there are as many, or
    none: `clear`, `close`, `unclear`, `mentioned`, `small talk`, `no match`, `no tool needed`,
    `one step`.
    """

    names: tuple[str, ...]
    scores: Mapping[str, float]
    mentioned: tuple[str, ...]
    reason: str


def predict(index: Index, cue: Cue, settings: Prediction, usage: Mapping[str, int]) -> Predicted:
    """Choose the shortlist; a pure function of its arguments."""
    mentioned = find_mentions(index, cue.newest_user, settings) if settings.mentions else ()
    silence = _reason_to_abstain(index, cue) if settings.abstain else ""
    if silence:
        return Predicted(mentioned, {}, mentioned, "mentioned" if mentioned else silence)
    chances = _weigh_leaders(_rank(index, cue, settings, usage))
    if not chances:
        return Predicted(mentioned, {}, mentioned, "mentioned" if mentioned else "no match")
    count, reason = _cut([chance for _, chance in chances], settings)
    chosen = _drop_costly([(index.documents[at], chance) for at, chance in chances[:count]])
    scores = {tool.name: round(chance, 4) for tool, chance in chosen}
    return Predicted(tuple(dict.fromkeys([*mentioned, *scores])), scores, mentioned, reason)


def order(
    index: Index, cue: Cue, settings: Prediction, usage: Mapping[str, int]
) -> list[tuple[str, float]]:
    """The leading tools that were not called yet, with scores in standard deviations."""
    hits = _rank(index, cue, settings, usage)
    return [(index.documents[hit.position].name, hit.score) for hit in hits]


def _rank(index: Index, cue: Cue, settings: Prediction, usage: Mapping[str, int]) -> list[Hit]:
    documents = index.documents
    values = _add_texts(index, cue) if documents else []
    top = max(values, default=0.0)
    if top <= 0.0:
        return []
    called = set(cue.called)
    groups = {tool.group for tool in documents if tool.name in called} - {""}
    sibling = settings.sibling_weight * top * (1.0 if cue.results else _vagueness(cue.newest_user))
    for position, tool in enumerate(documents):
        if tool.group in groups:
            values[position] += sibling
        if tool.name in usage:
            values[position] += settings.usage_weight * math.log1p(usage[tool.name])
        if tool.name in called:
            values[position] = 0.0
    return select(values, CONSIDERED, index.twins)


def _reason_to_abstain(index: Index, cue: Cue) -> str:
    """Why nothing is predicted; a wrong silence costs one search, a wrong guess its schemas."""
    newest = cue.newest_user
    if is_consent(newest) and cue.last_assistant:
        return ""
    if is_small_talk(newest):
        return "small talk"
    if cue.results and not sentences(newest, 2) and not _JOINT.search(newest):
        return "one step"
    scores = index.score(newest)
    if scores.closeness is None:
        return ""
    need = scores.closeness + COVERAGE_NEED * scores.coverage
    return "no tool needed" if need < LEAST_NEED else ""


def _add_texts(index: Index, cue: Cue) -> list[float]:
    """Add up the scores of what was said; context counts as far as the newest message is vague."""
    vagueness = _vagueness(cue.newest_user)
    consent = is_consent(cue.newest_user)
    parts = (
        (cue.newest_user, 0.0 if consent else 1.0),
        (cue.previous_user, PREVIOUS * vagueness),
        (cue.last_assistant, 1.0 if consent else ASSISTANT * vagueness),
    )
    total = [0.0] * len(index.documents)
    for text, weight in parts:
        if weight and text.strip():
            values = _standardise(index.score(text))
            total = [old + weight * value for old, value in zip(total, values, strict=True)]
    return total


def _vagueness(text: str) -> float:
    """1 for a message without words of its own, 0 for one that stands for itself."""
    own = {whole for whole, _ in words(text)} - WEAK_TERMS
    return 1.0 - min(len(own) / CLEAR_WORDS, 1.0)


def _standardise(scores: Scores) -> Sequence[float]:
    """Standard deviations above the mean; scores of meaning come that way already."""
    if scores.closeness is not None:
        return scores.values
    mean = sum(scores.values) / len(scores.values)
    spread = math.sqrt(sum((value - mean) ** 2 for value in scores.values) / len(scores.values))
    if not spread:
        return scores.values
    return [(value - mean) / spread if value else 0.0 for value in scores.values]


def _weigh_leaders(hits: Sequence[Hit]) -> list[tuple[int, float]]:
    """Scores to probabilities among the leaders, by softmax."""
    best = hits[0].score if hits else 0.0
    odds = [math.exp((hit.score - best) / TEMPERATURE) for hit in hits]
    total = sum(odds)
    return [(hit.position, odd / total) for hit, odd in zip(hits, odds, strict=True)]


def _drop_costly(leaders: Sequence[tuple[Document, float]]) -> list[tuple[Document, float]]:
    """Keep the first, and of the others those whose chance is worth their schema's tokens."""
    return [
        (tool, chance)
        for place, (tool, chance) in enumerate(leaders)
        if not place or chance * ROUND_TOKENS >= _tokens(tool)
    ]


def _tokens(tool: Document) -> int:
    return estimate_tokens(len(tool.description) + len(tool.parameters or b""))


def _cut(chances: Sequence[float], settings: Prediction) -> tuple[int, str]:
    """As many tools as make up the mass: few when clear, up to `widest` when close.

    Where no tool stands out at all, half a shortlist is tried: a search costs less than schemas.
    """
    needed, mass = 0, 0.0
    while needed < len(chances) and mass < MASS:
        mass += chances[needed]
        needed += 1
    if needed <= settings.shortlist:
        return needed, "clear"
    if needed <= settings.widest:
        return needed, "close"
    return (settings.shortlist + 1) // 2, "unclear"


def find_mentions(index: Index, text: str, settings: Prediction) -> tuple[str, ...]:
    """Tools whose name the text spells out, in order of appearance."""
    lowered = text.lower()
    found = []
    for tool in index.documents:
        name = tool.name.lower()
        if len(name) >= MIN_MENTION and name in lowered:
            match = re.search(rf"(?<![a-z0-9_-]){re.escape(name)}(?![a-z0-9_-])", lowered)
            if match:
                found.append((match.start(), tool.name))
    return tuple(dict.fromkeys(name for _, name in sorted(found)))[: settings.shortlist]
