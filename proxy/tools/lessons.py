"""Queries whose search ended in a call come in; a ranking that remembers them goes out."""

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import chain

from proxy.tools.document import Document
from proxy.tools.query import WEAK_TERMS
from proxy.tools.rank import Hit, Index, Scores, select
from proxy.tools.text import terms

PER_TENANT, MAX_BYTES = 256, 4 * 1024 * 1024
"""Lessons that a tenant's rankings remember; bytes of all tenants together."""
HALF_LIFE = 128
"""After so many others of its tenant a lesson weighs half: no clock, so ranking is repeatable."""
LEAST = 0.5
"""A question must share this much with a lesson, as the cosine of their sets of words."""
MOST, DOUBT = 0.95, 0.25
"""The highest share of the best score that a lesson gives, and the doubt left by one call."""
SURE = 0.85
"""From this share on the question is the same and ended so twice at least: it earns a place."""
ENTRY_BYTES, TERM_BYTES = 400, 160

Recall = Callable[[str], Mapping[str, float]]
"""From a question to the tools that questions like it ended in, each from 0 to 1."""
_Key = tuple[frozenset[str], str]


@dataclass(slots=True)
class _Notes:
    """One tenant's lessons, the oldest first: (weight, clock when it was last confirmed).

    `by_term` has the lessons that a word stands in, so that a question looks at few of them.
    """

    clock: int = 0
    uses: OrderedDict[_Key, tuple[float, int]] = field(default_factory=OrderedDict)
    by_term: dict[str, dict[_Key, None]] = field(default_factory=dict)

    def enter(self, key: _Key) -> None:
        for term in key[0]:
            self.by_term.setdefault(term, {})[key] = None

    def leave(self, key: _Key) -> None:
        for term in key[0]:
            keys = self.by_term[term]
            del keys[key]
            if not keys:
                del self.by_term[term]

    def count_shared(self, asked: Collection[str]) -> Counter[_Key]:
        """How many of the words asked for each lesson has; the rest has none."""
        known = self.by_term
        return Counter(chain.from_iterable(known[term] for term in asked if term in known))

    def weigh(self, weight: float, at: int) -> float:
        return weight * math.exp2((at - self.clock) / HALF_LIFE)


class Lessons:
    """What searches ended in, per tenant: the words of the query and the tool, nothing else.

    The oldest lesson leaves when a tenant has too many, or all tenants together too many bytes.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._tenants: OrderedDict[str, _Notes] = OrderedDict()
        self.bytes = 0

    def learn(self, tenant: str, query: str, tool: str) -> None:
        """Remembers, or confirms, that this query meant this tool."""
        own = _strong_terms(query)
        if not own:
            return
        notes = self._tenants.setdefault(tenant, _Notes())
        self._tenants.move_to_end(tenant)
        notes.clock += 1
        key = own, tool
        if key in notes.uses:
            weight = 1.0 + notes.weigh(*notes.uses.pop(key))
        else:
            weight = 1.0
            notes.enter(key)
            self.bytes += _size(key)
        notes.uses[key] = weight, notes.clock
        if len(notes.uses) > PER_TENANT:
            self._drop(notes)
        while self.bytes > self._max_bytes:
            self._drop_oldest()

    def recall(self, tenant: str, query: str) -> Mapping[str, float]:
        """The tools that queries like this one ended in, each from 0 to 1."""
        notes = self._tenants.get(tenant)
        if notes is None:
            return {}
        asked = _strong_terms(query)
        found: dict[str, float] = {}
        least = LEAST * LEAST * len(asked)  # a lesson has at least the words that it shares
        alike = [one for one in notes.count_shared(asked).items() if one[1] >= least]
        for key, shared in alike:
            own, tool = key
            likeness = shared / math.sqrt(len(own) * len(asked))
            if likeness >= LEAST:
                share = MOST * likeness * (1.0 - DOUBT ** notes.weigh(*notes.uses[key]))
                found[tool] = max(share, found.get(tool, 0.0))
        return found

    def _drop_oldest(self) -> None:
        tenant, notes = next(iter(self._tenants.items()))
        self._drop(notes)
        if not notes.uses:
            del self._tenants[tenant]

    def _drop(self, notes: _Notes) -> None:
        key, _ = notes.uses.popitem(last=False)
        notes.leave(key)
        self.bytes -= _size(key)


class LearnedIndex:
    """An index that raises the tools that questions like this one ended in.

    A lesson brings a tool close to the best score and never beyond it: siblings are asked for in
    like words, so adding to their scores costs more right answers than it finds. How close is no
    promise of a place where many scores are alike, so a sure lesson is given one, behind the best.
    """

    def __init__(self, index: Index, recall: Recall) -> None:
        self._index = index
        self._recall = recall
        names = enumerate(document.name for document in index.documents)
        self._positions = {name: position for position, name in reversed(list(names))}

    @property
    def documents(self) -> Sequence[Document]:
        """The catalogue, in the client's order."""
        return self._index.documents

    @property
    def twins(self) -> Mapping[int, int]:
        """For every repeated tool: where it stood first."""
        return self._index.twins

    def rank(self, query: str, limit: int) -> list[Hit]:
        """The best documents, best first."""
        learned = self._look_up(query)
        if not learned:
            return self._index.rank(query, limit)
        lifted = _lift(self._index.score(query), learned, self.twins)
        return select(lifted.values, limit, self.twins)

    def score(self, query: str) -> Scores:
        """The score of every document."""
        scores, learned = self._index.score(query), self._look_up(query)
        return _lift(scores, learned, self.twins) if learned else scores

    def _look_up(self, query: str) -> dict[int, float]:
        known, learned = self._positions, self._recall(query)
        return {known[name]: share for name, share in learned.items() if name in known}


def _lift(scores: Scores, learned: Mapping[int, float], twins: Collection[int]) -> Scores:
    values = list(scores.values)
    top = max(values)
    for position, share in learned.items():
        values[position] = max(values[position], share * (top if top > 0.0 else 1.0))
    sure = sorted((at for at, share in learned.items() if share >= SURE), key=learned.__getitem__)
    place = _find_second(values, {*sure, *twins}) if sure else 0.0
    for position in sure:
        place = math.nextafter(place, math.inf)
        values[position] = max(values[position], place)
    closeness = scores.closeness
    if closeness is not None:
        closeness = max(closeness, *learned.values())
    return Scores(values, scores.coverage, closeness)


def _find_second(values: Sequence[float], without: Collection[int]) -> float:
    """The second highest score of the other tools; the highest where two have it."""
    others = [value for at, value in enumerate(values) if at not in without]
    return min(nlargest(2, others), default=0.0)


def _strong_terms(query: str) -> frozenset[str]:
    return frozenset(terms(query)) - WEAK_TERMS


def _size(key: _Key) -> int:
    own, tool = key
    return ENTRY_BYTES + len(tool) + sum(TERM_BYTES + len(term) for term in own)
