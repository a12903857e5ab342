"""What ranking is to its callers: a catalogue goes in, an index that answers queries comes out."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from proxy.tools.document import Document
from proxy.tools.lexical import LexicalIndex, build_lexical
from proxy.tools.score import Hit, Scores, select

__all__ = ["Document", "Hit", "Index", "LexicalIndex", "Scores", "build_lexical", "select"]


class Index(Protocol):
    """A ranked catalogue."""

    @property
    def documents(self) -> Sequence[Document]:
        """The catalogue, in the client's order."""

    @property
    def twins(self) -> Mapping[int, int]:
        """For every repeated tool: where it stood first."""

    def rank(self, query: str, limit: int) -> list[Hit]:
        """The best documents, best first; ties keep the catalogue's order."""

    def score(self, query: str) -> Scores:
        """The score of every document."""
