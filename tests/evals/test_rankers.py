"""Rankers are opened by name and are ready when they are handed out."""

from pathlib import Path

import pytest

from proxy.errors import ConfigError
from proxy.evals.rankers import open_ranker
from proxy.tools.document import Document
from proxy.tools.semantic import has_semantic

DOCUMENTS = [Document("weather_now", "", "Current weather of a city.", None)]


def test_the_lexical_ranker_is_ready() -> None:
    """It says how long it took."""
    with open_ranker("lexical", None) as ranker:
        prepared = ranker(DOCUMENTS)
    assert prepared.index.rank("weather", 1)[0].position == 0
    assert prepared.index_ms > 0


def test_the_semantic_ranker_has_its_vectors(tmp_path: Path) -> None:
    """Measuring starts only when meaning counts."""
    if not has_semantic():
        pytest.skip("the extra `semantic` is not installed")
    with open_ranker("semantic", tmp_path / "vectors.bin") as ranker:
        assert ranker(DOCUMENTS).index.score("天気").closeness is not None


def test_an_unknown_ranker_is_refused() -> None:
    """The message names the known ones."""
    with pytest.raises(ConfigError, match="lexical, semantic"), open_ranker("best", None):
        pass
