"""Words and meaning together rank better than either."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from proxy.tools.adapter import Matrix
from proxy.tools.document import Document
from proxy.tools.hybrid import HybridIndex
from proxy.tools.lexical import build_lexical
from proxy.tools.vectors import QueryMemo

DOCUMENTS = [
    Document("weather_now", "", "Current weather of a city.", None),
    Document("mail_send", "", "Send an email.", None),
    Document("路线", "", "查询两地之间的路线。", None),
]


class Fixed:
    """A model for which everything means the same."""

    name = "fixed"
    adapter: Path | None = None

    def __init__(self, meaning: list[float]) -> None:
        self.size = len(meaning)
        self._meaning = meaning

    def encode(self, texts: Sequence[str]) -> Matrix:
        return np.array([self._meaning] * len(texts), dtype=np.float32)


def _index(meaning: list[float], documents: list[Document] = DOCUMENTS) -> HybridIndex:
    """An index for which every query means `meaning`, one number per document."""
    vectors = np.eye(len(documents), dtype=np.float32)
    return HybridIndex(build_lexical(documents), vectors, QueryMemo(Fixed(meaning)))


def _first(index: HybridIndex, query: str) -> str:
    return index.documents[index.rank(query, 1)[0].position].name


@pytest.mark.item("prediction/other-language")
def test_another_language_is_ranked_by_meaning() -> None:
    """Without a shared word the sentence vectors decide."""
    assert _first(_index([0.1, 0.9, 0.0]), "enviar un correo") == "mail_send"


def test_known_words_outweigh_vague_meaning() -> None:
    """With the catalogue's own words, a slight difference of meaning does not decide."""
    assert _first(_index([0.30, 0.31, 0.29]), "current weather of the city") == "weather_now"


def test_shared_characters_do_not_soak_up_a_language() -> None:
    """One Chinese tool among English ones is not the answer to every Chinese question."""
    assert _first(_index([0.9, 0.1, 0.2]), "查询两地的天气") == "weather_now"


def test_without_words_there_is_no_meaning() -> None:
    """An emoji or nothing ranks nothing."""
    assert _index([0.9, 0.1, 0.2]).rank("🎉 …", 5) == []


def test_a_single_tool_is_found() -> None:
    """One document has no spread to standardise by, and still ranks."""
    assert _first(_index([0.5], DOCUMENTS[:1]), "weather") == "weather_now"
    assert _index([], []).rank("weather", 5) == []


def test_closeness_is_the_best_cosine() -> None:
    """How near the nearest tool is tells whether any of them is meant."""
    closeness = _index([0.1, 0.75, 0.2]).score("mail").closeness
    assert closeness is not None
    assert abs(closeness - 0.75) < 1e-6
