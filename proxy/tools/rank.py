"""Tool documents go in once; for every query the best matching ones come out."""

import heapq
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from proxy.tools.document import Document, Fields, read_fields
from proxy.tools.group import local_name
from proxy.tools.text import sentences, squash, terms

K1, B = 1.0, 0.75
"""BM25 saturation and length normalisation."""
WEIGHTS = (2.0, 1.0, 0.7, 0.35)
"""Worth of a term in the name, the description, a parameter's name, a parameter's text."""
NAME_COVER = 0.35
"""How much a tool gains when the query says its whole name."""
MAX_SENTENCES = 12
__all__ = ["Document", "Hit", "Index", "LexicalIndex", "Scores", "build_lexical"]


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that matches; `position` is its index in the catalogue."""

    position: int
    score: float


@dataclass(frozen=True, slots=True)
class Scores:
    """One query against every document; `coverage` is the share of it the catalogue knows."""

    values: Sequence[float]
    coverage: float


class Index(Protocol):
    """A ranked catalogue."""

    @property
    def documents(self) -> Sequence[Document]:
        """The catalogue, in the client's order."""

    def rank(self, query: str, limit: int) -> list[Hit]:
        """The best documents, best first; ties keep the catalogue's order."""

    def score(self, query: str) -> Scores:
        """The score of every document."""


@dataclass(frozen=True, slots=True)
class Posting:
    """Where a term occurs and what each occurrence is worth."""

    positions: list[int]
    weights: list[float]


class LexicalIndex:
    """BM25F over names, descriptions and parameters, with everything precomputed."""

    def __init__(self, documents: Sequence[Document], fields: Sequence[Fields]) -> None:
        self.documents = documents
        self._rarity, self._unknown = _rarities(fields)
        self._postings = _postings(fields, self._rarity)
        self._names = _name_postings(fields, self._rarity)
        self._exact = _exact_names(documents)
        self.twins = _twins(documents)

    def rank(self, query: str, limit: int) -> list[Hit]:
        """The best documents, best first; documents without any match are left out."""
        return select(self.score(query).values, self.twins, limit)

    def score(self, query: str) -> Scores:
        """Score a query: the whole text, its best sentence, and names it spells out."""
        whole = terms(query)
        values = self._bm25(whole)
        parts = sentences(query, MAX_SENTENCES)
        if parts:
            values = self._with_sentences(values, parts)
        for position in self._named(query):
            values[position] += 2 * max(values, default=0.0) + 1.0
        return Scores(values, self._coverage(whole))

    def _bm25(self, query: Sequence[str]) -> list[float]:
        values = [0.0] * len(self.documents)
        cover = defaultdict[int, float](float)
        for term in dict.fromkeys(query):
            posting = self._postings.get(term)
            if posting is None:
                continue
            for position, weight in zip(posting.positions, posting.weights, strict=True):
                values[position] += weight
            named = self._names.get(term)
            if named is not None:
                for position, weight in zip(named.positions, named.weights, strict=True):
                    cover[position] += weight
        for position, share in cover.items():
            values[position] *= 1.0 + NAME_COVER * share
        return values

    def _with_sentences(self, whole: list[float], parts: Sequence[str]) -> list[float]:
        """Add the best sentence's score, so that a long message hides none of its requests."""
        best = [0.0] * len(whole)
        for part in parts:
            values = self._bm25(terms(part))
            top = max(values, default=0.0)
            if top:
                best = [max(old, new / top) for old, new in zip(best, values, strict=True)]
        scale = max(whole, default=0.0)
        return [value + scale * extra for value, extra in zip(whole, best, strict=True)]

    def _named(self, query: str) -> Sequence[int]:
        if len(query) > 100:
            return ()
        return self._exact.get(squash(query), ())

    def _coverage(self, query: Sequence[str]) -> float:
        total = known = 0.0
        for term in query:
            rarity = self._rarity.get(term)
            known += rarity or 0.0
            total += self._unknown if rarity is None else rarity
        return known / total if total else 0.0


def build_lexical(documents: Sequence[Document]) -> LexicalIndex:
    """Index a catalogue."""
    return LexicalIndex(documents, read_fields(documents))


def select(values: Sequence[float], twins: Sequence[int], limit: int) -> list[Hit]:
    """The best positive scores; of identical tools only the first."""
    wanted = heapq.nsmallest(
        min(limit, len(values)) * 2 + 8,
        ((-value, position) for position, value in enumerate(values) if value > 0.0),
    )
    hits: list[Hit] = []
    seen: set[int] = set()
    for value, position in wanted:
        if twins[position] not in seen:
            seen.add(twins[position])
            hits.append(Hit(position, -value))
    return hits[: max(limit, 0)]


def _rarities(fields: Sequence[Fields]) -> tuple[dict[str, float], float]:
    """Inverse document frequency of every term, and of one that occurs nowhere."""
    counts = defaultdict[str, int](int)
    for own in fields:
        for term in {*own.name, *own.description, *own.parameter_names, *own.parameter_texts}:
            counts[term] += 1
    size = len(fields)
    rarity = {t: math.log(1 + (size - n + 0.5) / (n + 0.5)) for t, n in counts.items()}
    return rarity, math.log(1 + (size + 0.5) / 0.5)


def _postings(fields: Sequence[Fields], rarity: Mapping[str, float]) -> dict[str, Posting]:
    """Weigh every term of every document: BM25F with one length per field."""
    columns = [_column(fields, field) for field in range(len(WEIGHTS))]
    postings = defaultdict[str, Posting](lambda: Posting([], []))
    norms = [_norms(column) for column in columns]
    for position in range(len(fields)):
        frequency = defaultdict[str, float](float)
        for column, norm, weight in zip(columns, norms, WEIGHTS, strict=True):
            share = weight / norm[position]
            for term in column[position]:
                frequency[term] += share
        for term, tf in frequency.items():
            posting = postings[term]
            posting.positions.append(position)
            posting.weights.append(rarity[term] * tf * (K1 + 1) / (tf + K1))
    return dict(postings)


def _column(fields: Sequence[Fields], field: int) -> list[tuple[str, ...]]:
    names = ("name", "description", "parameter_names", "parameter_texts")
    return [getattr(own, names[field]) for own in fields]


def _norms(column: Sequence[tuple[str, ...]]) -> list[float]:
    mean = sum(map(len, column)) / len(column) if column else 0.0
    return [1 - B + B * len(own) / mean if mean else 1.0 for own in column]


def _name_postings(fields: Sequence[Fields], rarity: Mapping[str, float]) -> dict[str, Posting]:
    """For every term of a name: the share of that name's weight it stands for."""
    postings = defaultdict[str, Posting](lambda: Posting([], []))
    for position, own in enumerate(fields):
        parts = dict.fromkeys(own.name)
        total = sum(rarity[term] for term in parts)
        for term in parts:
            postings[term].positions.append(position)
            postings[term].weights.append(rarity[term] / total if total else 0.0)
    return dict(postings)


def _exact_names(documents: Sequence[Document]) -> dict[str, list[int]]:
    exact = defaultdict[str, list[int]](list)
    for position, document in enumerate(documents):
        names = {squash(document.name), squash(local_name(document.name, document.group))}
        for name in names - {""}:
            exact[name].append(position)
    return dict(exact)


def _twins(documents: Sequence[Document]) -> list[int]:
    """For every document the first one with the same name and description."""
    first: dict[tuple[str, str], int] = {}
    return [
        first.setdefault((document.name, document.description), position)
        for position, document in enumerate(documents)
    ]
