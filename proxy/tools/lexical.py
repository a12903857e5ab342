"""Tool documents go in once; for every query the words they share with it decide."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import pairwise

import msgspec

from proxy.tools.document import Document, Fields, read_fields
from proxy.tools.group import local_name
from proxy.tools.postings import find_acronyms, find_rarity, post_terms
from proxy.tools.query import Reader, Terms, Vocabulary
from proxy.tools.score import Hit, Scores, select
from proxy.tools.signals import Signals
from proxy.tools.tally import Places, Share, Tally
from proxy.tools.text import share_unspaced, squash
from proxy.tools.verbs import find_verb

EFFORT, SENTENCE_EFFORT, FEW = 2_500, 600, 50
"""Occurrences added up for a query, for a sentence; beyond them words only rank the leaders.

The next rarest word is always taken while there are no more than a few occurrences.
"""


class _Work(msgspec.Struct, frozen=True):
    """A query as it is added up; `late` words only rank the leaders, by what each is worth."""

    terms: Terms
    tally: Tally
    late: Sequence[tuple[Places, float]]


class LexicalIndex:
    """BM25F over names, descriptions and parameters, with everything precomputed."""

    def __init__(
        self, documents: Sequence[Document], fields: Sequence[Fields], signals: Signals
    ) -> None:
        self._signals = signals
        self.documents = documents
        self.twins = find_twins(documents)
        self._fields = fields
        self._postings = post_terms(fields)
        self._acronyms = find_acronyms(documents, self._postings)
        self._verbs = [find_verb(reversed(own.name)) for own in fields]
        self._pairs: list[frozenset[tuple[str, str]] | None] = [None] * len(documents)
        self._exact = _exact_names(documents)
        self.vocabulary = Vocabulary(
            {term: posting.rarity for term, posting in self._postings.items()},
            find_rarity(0, len(documents)),
            share_unspaced([document.description for document in documents]),
        )
        self._reader = Reader(self.vocabulary, signals)

    def rank(self, query: str, limit: int) -> list[Hit]:
        """The best documents, best first; documents without any match are left out."""
        values, leaders, _ = self._score(query)
        return select(values, limit, self.twins, leaders)

    def score(self, query: str) -> Scores:
        """The score of every document."""
        values, _, coverage = self._score(query)
        return Scores(values, coverage)

    def _score(self, query: str) -> tuple[list[float], set[int], float]:
        """Score a query by the whole text, its best sentence, and a name it spells out."""
        whole, sentences = self._reader.read(query, self._signals.sentences)
        values, leaders = self._add_up(self._plan(whole, EFFORT))
        best = self._best_sentences(sentences)
        if best:
            top = max(map(values.__getitem__, leaders), default=0.0)
            leaders |= best.keys()
            for position, share in best.items():
                values[position] += top * share
        for position in self._exact.get(squash(query), ()) if len(query) <= 100 else ():
            values[position] += 2 * max(values, default=0.0) + 1.0
            leaders.add(position)
        return values, leaders, whole.coverage

    def _best_sentences(self, sentences: Sequence[Terms]) -> dict[int, float]:
        """The leaders of each sentence, so that a long message hides none of its requests."""
        best: dict[int, float] = {}
        for sentence in sentences:
            values, leaders = self._add_up(self._plan(sentence, SENTENCE_EFFORT))
            top = max(map(values.__getitem__, leaders), default=0.0)
            for position in leaders:
                share = values[position] / top
                if share > best.get(position, 0.0):
                    best[position] = share
        return best

    def _add_up(self, work: _Work) -> tuple[list[float], set[int]]:
        """All scores; the leaders were compared closely: common words, word order, verbs."""
        values = work.tally.add_up(len(self.documents))
        leaders = work.tally.find_leaders(values)
        for weights, worth in work.late:
            for position in weights.keys() & leaders:
                values[position] += worth * weights[position]
        pairs, verb = work.terms.pairs, work.terms.verb
        known, kinds, worth = self._pairs, self._verbs, self._signals.verb
        for position in leaders:
            own = known[position] or self._find_pairs(position)
            if not own.isdisjoint(pairs):
                values[position] += self._worth_of_pairs(own & pairs)
        for position in leaders if verb is not None else ():
            kind = kinds[position]
            if kind is not None:
                values[position] *= 1.0 + worth if kind == verb else 1.0 - worth
        return values, leaders

    def _plan(self, terms: Terms, effort: int) -> _Work:
        """The rarest terms of a query score documents, as many as the effort allows."""
        find = self._postings.get
        known = [
            (len(posting.weights), place, posting, weight)
            for place, (term, weight) in enumerate(terms.weights.items())
            if (posting := find(term))
        ]
        early: list[Share] = []
        late: list[tuple[Places, float]] = []
        count = 0
        for size, _, posting, weight in sorted(known):
            if count > FEW and count + size > effort:
                late.append((posting.weights, weight * posting.rarity))
            else:
                count += size
                early.append((posting, weight))
        tally = Tally(early, self._find_gains(terms), self._signals.name_cover)
        return _Work(terms, tally, late)

    def _find_gains(self, terms: Terms) -> list[Places]:
        """What documents gain whose initials the query says."""
        acronyms = (self._acronyms[t] for t in terms.unknown if t in self._acronyms)
        worth, size = self._signals.acronym, len(self.documents)
        return [dict.fromkeys(own, worth * find_rarity(len(own), size)) for own in acronyms]

    def _worth_of_pairs(self, pairs: Collection[tuple[str, str]]) -> float:
        """Sorted, since the order of a set, and with it the rounding of a sum, is no constant."""
        rarity = self.vocabulary.rarity
        return self._signals.pair * sum(sorted([rarity[a] + rarity[b] for a, b in pairs]))

    def _find_pairs(self, position: int) -> frozenset[tuple[str, str]]:
        """Neighbouring terms of a name and of a description; remembered once needed."""
        own = self._fields[position]
        pairs = frozenset(pair for text in (own.name, own.description) for pair in pairwise(text))
        self._pairs[position] = pairs
        return pairs


def _exact_names(documents: Sequence[Document]) -> dict[str, list[int]]:
    exact = defaultdict[str, list[int]](list)
    for position, document in enumerate(documents):
        names = {squash(document.name), squash(local_name(document.name, document.group))}
        for name in names - {""}:
            exact[name].append(position)
    return dict(exact)


def find_twins(documents: Sequence[Document]) -> dict[int, int]:
    """For every repeated name with the same description: where it stood first."""
    first: dict[tuple[str, str], int] = {}
    keys = [(document.name, document.description) for document in documents]
    places = [first.setdefault(key, position) for position, key in enumerate(keys)]
    return {position: place for position, place in enumerate(places) if position != place}


def build_lexical(documents: Sequence[Document], signals: Signals | None = None) -> LexicalIndex:
    """Index a catalogue."""
    chosen = signals or Signals()
    return LexicalIndex(documents, read_fields(documents, chosen), chosen)
