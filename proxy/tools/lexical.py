"""Tool documents go in once; for every query the words they share with it decide."""

import math
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from proxy.tools.document import Document, Fields, read_fields
from proxy.tools.group import local_name
from proxy.tools.query import Terms, Vocabulary, read_query
from proxy.tools.score import Hit, Scores, select
from proxy.tools.text import sentences, squash
from proxy.tools.verbs import find_verb

K1, B = 1.0, 0.75
"""BM25 saturation and length normalisation."""
WEIGHTS = (2.0, 1.0, 0.7, 0.35)
"""Worth of a term in the name, the description, a parameter's name, a parameter's text."""
NAME_COVER = 0.35
"""How much a tool gains when the query says its whole name."""
PAIR, VERB = 0.1, 0.15
"""Gain of two neighbouring words that stay neighbours; gain or loss of a verb that (dis)agrees."""
ACRONYM = 0.8
LEADING = 0.45
"""Documents of at least this share of the best score are compared more closely."""
EFFORT, SENTENCE_EFFORT = 4_000, 1_500
"""Occurrences added up for a query, for a sentence; beyond them words only rank the leaders."""
MAX_SENTENCES = 10
_TITLE = re.compile(r"(?:[A-Z][a-z]+[ -]){1,4}[A-Z][a-z]+")


class Posting:
    """Where a term occurs and how much; and how rare it is."""

    __slots__ = ("positions", "rarity", "weights")

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.weights: list[float] = []
        self.rarity = 0.0


class LexicalIndex:
    """BM25F over names, descriptions and parameters, with everything precomputed."""

    def __init__(self, documents: Sequence[Document], fields: Sequence[Fields]) -> None:
        self.documents = documents
        self.twins = find_twins(documents)
        self._fields = fields
        self._postings = _post(fields)
        self._names = _post_names(fields, self._postings)
        self._acronyms = _find_acronyms(documents, self._postings)
        self._verbs = [find_verb(reversed(own.name)) for own in fields]
        self._pairs: list[frozenset[tuple[str, str]] | None] = [None] * len(documents)
        self._exact = _exact_names(documents)
        self.vocabulary = Vocabulary(
            {term: posting.rarity for term, posting in self._postings.items()},
            _rarity(0, len(documents)),
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
        terms = read_query(query, self.vocabulary)
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
        for part in sentences(query, MAX_SENTENCES):
            values, leaders = self._add_up(read_query(part, self.vocabulary), SENTENCE_EFFORT)
            top = max(map(values.__getitem__, leaders), default=0.0)
            for position in leaders:
                best[position] = max(best.get(position, 0.0), values[position] / top)
        return best

    def _add_up(self, terms: Terms, effort: int) -> tuple[list[float], set[int]]:
        """Score by rare terms first; words beyond the effort only rank the leaders."""
        values = [0.0] * len(self.documents)
        touched: list[int] = []
        late: list[tuple[Posting, float]] = []
        for posting, weight in self._look_up(terms):
            worth = weight * posting.rarity
            if len(touched) > effort:
                late.append((posting, worth))
                continue
            touched += posting.positions
            for position, share in zip(posting.positions, posting.weights, strict=True):
                values[position] += worth * share
        self._add_name_cover(values, terms)
        touched += self._add_acronyms(values, terms)
        floor = LEADING * max(map(values.__getitem__, touched), default=0.0)
        leaders = {position for position in touched if values[position] > floor}
        for position in leaders:
            values[position] = self._refine(values[position], position, terms, late)
        return values, leaders

    def _look_up(self, terms: Terms) -> list[tuple[Posting, float]]:
        """The postings of a query's terms, rarest first."""
        postings = self._postings
        known = [
            (postings[term], weight) for term, weight in terms.weights.items() if term in postings
        ]
        known.sort(key=lambda item: len(item[0].positions))
        return known

    def _add_name_cover(self, values: list[float], terms: Terms) -> None:
        """Favour tools whose whole name the query says."""
        cover: dict[int, float] = {}
        for term, weight in terms.weights.items():
            for position, share in self._names.get(term, ()):
                cover[position] = cover.get(position, 0.0) + share * min(weight, 1.0)
        for position, share in cover.items():
            values[position] *= 1.0 + NAME_COVER * share

    def _refine(
        self, value: float, position: int, terms: Terms, late: Sequence[tuple[Posting, float]]
    ) -> float:
        """Compare a leader more closely: common words, word order, the verb of the request."""
        for posting, worth in late:
            at = bisect_left(posting.positions, position)
            if at < len(posting.positions) and posting.positions[at] == position:
                value += worth * posting.weights[at]
        for pair in terms.pairs & self._pairs_of(position):
            value += PAIR * sum(self.vocabulary.rarity.get(term, 0.0) for term in pair)
        own = self._verbs[position]
        if terms.verb is None or own is None:
            return value
        return value * (1.0 + VERB if own == terms.verb else 1.0 - VERB)

    def _pairs_of(self, position: int) -> frozenset[tuple[str, str]]:
        """Neighbouring terms of a name and of a description; remembered once needed."""
        known = self._pairs[position]
        if known is None:
            own = self._fields[position]
            texts = own.name, own.description
            known = frozenset(p for text in texts for p in zip(text, text[1:], strict=False))
            self._pairs[position] = known
        return known

    def _add_acronyms(self, values: list[float], terms: Terms) -> list[int]:
        touched: list[int] = []
        for term in terms.weights.keys() & self._acronyms.keys():
            positions = self._acronyms[term]
            for position in positions:
                values[position] += ACRONYM * _rarity(len(positions), len(values))
            touched += positions
        return touched


def _rarity(count: int, size: int) -> float:
    """Lucene's inverse document frequency."""
    return math.log(1 + (size - count + 0.5) / (count + 0.5))


def _post(fields: Sequence[Fields]) -> dict[str, Posting]:
    """Weigh every term of every document: BM25F with one length per field."""
    postings = defaultdict[str, Posting](Posting)
    columns = [
        [own.name for own in fields],
        [own.description for own in fields],
        [own.parameter_names for own in fields],
        [own.parameter_texts for own in fields],
    ]
    norms = [_norms(column, weight) for column, weight in zip(columns, WEIGHTS, strict=True)]
    for position in range(len(fields)):
        frequency: dict[str, float] = {}
        for column, norm in zip(columns, norms, strict=True):
            share = norm[position]
            for term, count in Counter(column[position]).items():
                frequency[term] = frequency.get(term, 0.0) + count * share
        for term, tf in frequency.items():
            posting = postings[term]
            posting.positions.append(position)
            posting.weights.append(tf * (K1 + 1) / (tf + K1))
    for posting in postings.values():
        posting.rarity = _rarity(len(posting.positions), len(fields))
    return dict(postings)


def _norms(column: Sequence[tuple[str, ...]], weight: float) -> list[float]:
    """For every document: what one occurrence in this field is worth."""
    mean = sum(map(len, column)) / len(column) if column else 0.0
    return [weight / (1 - B + B * len(own) / mean) if mean else weight for own in column]


def _post_names(
    fields: Sequence[Fields], postings: Mapping[str, Posting]
) -> dict[str, list[tuple[int, float]]]:
    """For every term of a name: the share of that name's rarity it stands for."""
    names = defaultdict[str, list[tuple[int, float]]](list)
    for position, own in enumerate(fields):
        parts = dict.fromkeys(own.name)
        total = sum(postings[term].rarity for term in parts)
        for term in parts if total else ():
            names[term].append((position, postings[term].rarity / total))
    return dict(names)


def _find_acronyms(
    documents: Sequence[Document], postings: dict[str, Posting]
) -> dict[str, tuple[int, ...]]:
    """Initials of capitalised phrases and of names that are no words of their own."""
    found = defaultdict[str, dict[int, None]](dict)
    for position, document in enumerate(documents):
        phrases = [re.split("[ -]", match) for match in _TITLE.findall(document.description)]
        phrases.append([part for part in re.split(r"[^A-Za-z0-9]+", document.name) if part])
        for phrase in phrases:
            for initials in _initials(phrase):
                if initials not in postings:
                    found[initials][position] = None
    return {initials: tuple(positions) for initials, positions in found.items()}


def _initials(phrase: Sequence[str]) -> list[str]:
    letters = "".join(word[0] for word in phrase).lower()
    size = len(letters)
    return [letters[a:b] for a in range(size) for b in range(a + 2, min(a + 5, size) + 1)]


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


def build_lexical(documents: Sequence[Document]) -> LexicalIndex:
    """Index a catalogue."""
    return LexicalIndex(documents, read_fields(documents))
