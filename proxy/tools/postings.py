"""Terms of every document go in; postings that a query can add up come out."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from proxy.tools.document import Document, Fields

K1, B = 1.0, 0.75
"""BM25 saturation and length normalisation."""
WEIGHTS = (2.0, 1.0, 0.7, 0.35)
"""Worth of a term in the name, the description, a parameter's name, a parameter's text."""
MAX_TITLES = 2_000
"""Characters of a description that are searched for capitalised phrases."""
_TITLE = re.compile(r"(?:[A-Z][a-z]+[ -]){1,4}[A-Z][a-z]+")


class Posting:
    """Where a term occurs and how much; how rare it is; the largest of its weights.

    `names` are the shares of the documents' names that it stands for.
    """

    __slots__ = ("most", "names", "rarity", "weights")

    def __init__(self) -> None:
        self.weights: dict[int, float] = {}
        self.names: dict[int, float] = {}
        self.rarity = self.most = 0.0


def find_rarity(count: int, size: int) -> float:
    """Lucene's inverse document frequency."""
    return math.log(1 + (size - count + 0.5) / (count + 0.5))


def post_terms(fields: Sequence[Fields]) -> dict[str, Posting]:
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
            postings[term].weights[position] = tf * (K1 + 1) / (tf + K1)
    for posting in postings.values():
        posting.rarity = find_rarity(len(posting.weights), len(fields))
        posting.most = max(posting.weights.values())
    _post_names(fields, postings)
    return dict(postings)


def _norms(column: Sequence[tuple[str, ...]], weight: float) -> list[float]:
    """For every document: what one occurrence in this field is worth."""
    mean = sum(map(len, column)) / len(column) if column else 0.0
    return [weight / (1 - B + B * len(own) / mean) if mean else weight for own in column]


def _post_names(fields: Sequence[Fields], postings: Mapping[str, Posting]) -> None:
    """For every term of a name: the share of that name's rarity it stands for."""
    for position, own in enumerate(fields):
        parts = [postings[term] for term in dict.fromkeys(own.name)]
        total = sum(part.rarity for part in parts)
        for part in parts if total else ():
            part.names[position] = part.rarity / total


def find_acronyms(
    documents: Sequence[Document], postings: Mapping[str, Posting]
) -> dict[str, list[int]]:
    """Initials of capitalised phrases and of names, as far as they are no words of their own."""
    found = defaultdict[str, list[int]](list)
    for position, document in enumerate(documents):
        for initials in dict.fromkeys(_all_initials(document)):
            if initials not in postings:
                found[initials].append(position)
    return dict(found)


def _all_initials(document: Document) -> Iterator[str]:
    for title in _TITLE.findall(document.description[:MAX_TITLES]):
        yield from _initials(re.split("[ -]", title))
    yield from _initials([part for part in re.split(r"[^A-Za-z0-9]+", document.name) if part])


def _initials(phrase: Sequence[str]) -> Iterator[str]:
    letters = "".join(word[0] for word in phrase).lower()
    size = len(letters)
    return (letters[a:b] for a in range(size) for b in range(a + 2, min(a + 5, size) + 1))
