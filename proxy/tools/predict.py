"""What was just said and called goes in; the tools the turn will probably need come out."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proxy.settings import Prediction
from proxy.tools.rank import Index, Scores, select

PREVIOUS, ASSISTANT = 0.4, 0.3
"""Weight of the previous user message and of the last reply beside the newest message."""
MIN_MENTION = 4


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
    """Tools to load, best first; `mentioned` are those the user named."""

    names: tuple[str, ...]
    scores: Mapping[str, float]
    mentioned: tuple[str, ...]
    reason: str


def predict(index: Index, cue: Cue, settings: Prediction, usage: Mapping[str, int]) -> Predicted:
    """Choose the shortlist; a pure function of its arguments."""
    documents = index.documents
    mentioned = find_mentions(index, cue.newest_user, settings) if settings.mentions else ()
    values = _weigh(index, cue)
    top = max(values, default=0.0)
    if top <= 0.0:
        return Predicted(mentioned, {}, mentioned, "mentioned" if mentioned else "no match")
    groups = {tool.group for tool in documents if tool.name in set(cue.called)} - {""}
    total = [
        value / top
        + settings.sibling_weight * (documents[p].group in groups)
        + settings.usage_weight * math.log1p(usage.get(documents[p].name, 0))
        for p, value in enumerate(values)
    ]
    hits = select(total, settings.shortlist, index.twins)
    names = tuple(dict.fromkeys([*mentioned, *(documents[hit.position].name for hit in hits)]))
    scores = {documents[hit.position].name: round(hit.score, 4) for hit in hits}
    return Predicted(names, scores, mentioned, "ranked")


def _weigh(index: Index, cue: Cue) -> Sequence[float]:
    """Add up the scores of what was said, the newest weighing most."""
    parts = [(cue.newest_user, 1.0), (cue.previous_user, PREVIOUS), (cue.last_assistant, ASSISTANT)]
    total = [0.0] * len(index.documents)
    for text, weight in parts:
        if text.strip():
            scores: Scores = index.score(text)
            total = [old + weight * value for old, value in zip(total, scores.values, strict=True)]
    return total


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
