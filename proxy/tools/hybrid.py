"""Scores of words and of meaning go in; one ranking that works across languages comes out."""

from collections.abc import Mapping, Sequence

import numpy as np

from proxy.tools.adapter import Matrix
from proxy.tools.document import Document
from proxy.tools.lexical import LexicalIndex
from proxy.tools.score import Hit, Scores, select
from proxy.tools.vectors import QueryMemo


class HybridIndex:
    """A lexical index that also compares meaning.

    score = c · z(words) + z(cosine), where c is the share of the query's weight that the catalogue
    knows: a query in another language is ranked by meaning alone.
    """

    def __init__(self, lexical: LexicalIndex, vectors: Matrix, queries: QueryMemo) -> None:
        self._lexical = lexical
        self._vectors = vectors
        self._queries = queries

    @property
    def documents(self) -> Sequence[Document]:
        """The catalogue, in the client's order."""
        return self._lexical.documents

    @property
    def twins(self) -> Mapping[int, int]:
        """For every repeated tool: where it stood first."""
        return self._lexical.twins

    def rank(self, query: str, limit: int) -> list[Hit]:
        """The best documents, best first."""
        return select(self.score(query).values, limit, self.twins)

    def score(self, query: str) -> Scores:
        """The score of every document."""
        lexical = self._lexical.score(query)
        if not lexical.values or not any(map(str.isalnum, query)):
            return lexical
        cosines = self._vectors @ self._queries.encode(query)
        words = np.asarray(lexical.values, dtype=np.float32)
        fused = lexical.coverage * _standardise(words) + _standardise(cosines)
        return Scores(fused.tolist(), lexical.coverage, float(cosines.max(initial=0.0)))


def _standardise(values: Matrix) -> Matrix:
    """Express values in standard deviations above their mean; equal ones by themselves."""
    spread = float(values.std())
    if spread < 1e-6:
        return np.sign(values)
    standard: Matrix = ((values - values.mean()) / spread).astype(np.float32)
    return standard
