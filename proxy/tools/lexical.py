"""Tool documents go in once; for every query the words they share with it decide."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import pairwise

from proxy.tools.document import Document, Fields, read_fields
from proxy.tools.group import local_name
from proxy.tools.postings import Posting, find_acronyms, find_rarity, post_names, post_terms
from proxy.tools.query import Terms, Vocabulary, read_query
from proxy.tools.score import Hit, Scores, select
from proxy.tools.signals import Signals
from proxy.tools.text import sentences, share_unspaced, squash
from proxy.tools.verbs import find_verb

LEADING = 0.45
"""Documents of at least this share of the best score are compared more closely."""
EFFORT, SENTENCE_EFFORT, FEW = 2_500, 600, 50
"""Occurrences added up for a query, for a sentence; beyond them words only rank the leaders.

The next rarest word is always taken while there are no more than a few occurrences.
"""


Late = list[tuple[Posting, float]]
"""Postings of words too common to score every document by, and what one occurrence is worth."""


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
        self._names = post_names(fields, self._postings)
        self._acronyms = find_acronyms(documents, self._postings)
        self._verbs = [find_verb(reversed(own.name)) for own in fields]
        self._pairs: list[frozenset[tuple[str, str]] | None] = [None] * len(documents)
        self._exact = _exact_names(documents)
        self.vocabulary = Vocabulary(
            {term: posting.rarity for term, posting in self._postings.items()},
            find_rarity(0, len(documents)),
            share_unspaced([document.description for document in documents]),
        )

    def rank(self, query: str, limit: int) -> list[Hit]:
        """The best documents, best first; documents without any match are left out."""
        values, leaders, _ = self._score(query)
        return select(values, limit, self.twins, leaders)

    def score(self, query: str) -> Scores:
        """The score of every document."""
        values, _, coverage = self._score(query)
        return Scores(values, coverage)

    def _score(self, query: str) -> tuple[list[float], Collection[int], float]:
        """Score a query by the whole text, its best sentence, and a name it spells out."""
        terms = read_query(query, self.vocabulary, self._signals)
        values, leaders = self._add_up(terms, EFFORT)
        best = self._best_sentences(query)
        if best:
            top = max(map(values.__getitem__, leaders), default=0.0)
            leaders = {*leaders, *best}
            for position, share in best.items():
                values[position] += top * share
        for position in self._exact.get(squash(query), ()) if len(query) <= 100 else ():
            values[position] += 2 * max(values, default=0.0) + 1.0
            leaders = {*leaders, position}
        return values, leaders, terms.coverage

    def _best_sentences(self, query: str) -> dict[int, float]:
        """The leaders of each sentence, so that a long message hides none of its requests."""
        best: dict[int, float] = {}
        for part in sentences(query, self._signals.sentences):
            values, leaders = self._add_up(
                read_query(part, self.vocabulary, self._signals), SENTENCE_EFFORT
            )
            top = max(map(values.__getitem__, leaders), default=0.0)
            for position in leaders:
                best[position] = max(best.get(position, 0.0), values[position] / top)
        return best

    def _add_up(self, terms: Terms, effort: int) -> tuple[list[float], set[int]]:
        """Score by rare terms first; words beyond the effort only rank the leaders."""
        values = [0.0] * len(self.documents)
        touched: list[int] = []
        late: Late = []
        cover: dict[int, float] = {}
        for term, weight in self._look_up(terms):
            posting = self._postings[term]
            worth = weight * posting.rarity
            if len(touched) > FEW and len(touched) + len(posting.positions) > effort:
                late.append((posting, worth))
                continue
            touched += posting.positions
            for position, share in zip(posting.positions, posting.weights, strict=True):
                values[position] += worth * share
            share_of_name = min(weight, 1.0)
            for position, share in self._names.get(term, ()):
                cover[position] = cover.get(position, 0.0) + share * share_of_name
        for position, share in cover.items():
            values[position] *= 1.0 + self._signals.name_cover * share
        touched += self._add_acronyms(values, terms)
        floor = LEADING * max(map(values.__getitem__, touched), default=0.0)
        leaders = {position for position in touched if values[position] > floor}
        for position in leaders:
            values[position] = self._refine(values[position], position, terms, late)
        return values, leaders

    def _look_up(self, terms: Terms) -> list[tuple[str, float]]:
        """The terms that the catalogue knows, rarest first."""
        known = [(term, weight) for term, weight in terms.weights.items() if term in self._postings]
        known.sort(key=lambda item: len(self._postings[item[0]].positions))
        return known

    def _refine(self, value: float, position: int, terms: Terms, late: Late) -> float:
        """Compare a leader more closely: common words, word order, the verb of the request."""
        for posting, worth in late:
            at = bisect_left(posting.positions, position)
            if at < len(posting.positions) and posting.positions[at] == position:
                value += worth * posting.weights[at]
        for pair in terms.pairs & self._pairs_of(position):
            value += self._signals.pair * sum(
                self.vocabulary.rarity.get(term, 0.0) for term in pair
            )
        own = self._verbs[position]
        if terms.verb is None or own is None:
            return value
        return value * (1.0 + self._signals.verb * (1 if own == terms.verb else -1))

    def _pairs_of(self, position: int) -> frozenset[tuple[str, str]]:
        """Neighbouring terms of a name and of a description; remembered once needed."""
        known = self._pairs[position]
        if known is None:
            own = self._fields[position]
            texts = own.name, own.description
            known = frozenset(p for text in texts for p in pairwise(text))
            self._pairs[position] = known
        return known

    def _add_acronyms(self, values: list[float], terms: Terms) -> list[int]:
        touched: list[int] = []
        for term in terms.weights.keys() & self._acronyms.keys():
            positions = self._acronyms[term]
            for position in positions:
                values[position] += self._signals.acronym * find_rarity(len(positions), len(values))
            touched += positions
        return touched


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
