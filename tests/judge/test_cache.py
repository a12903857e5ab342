"""Answers that are kept for a while."""

from proxy.judge.cache import AnswerCache
from proxy.judge.questions import NoulAnswer
from proxy.judge.reading import Reading

ONE = Reading({"a": NoulAnswer(0.5)})


def test_an_answer_is_kept_for_its_time() -> None:
    """Then it is asked again."""
    now = [0.0]
    cache = AnswerCache(10, 8, lambda: now[0])
    cache.put("k", ONE)
    now[0] = 9.9
    assert cache.get("k") is ONE
    now[0] = 10.0
    assert cache.get("k") is None
    assert cache.get("other") is None


def test_the_one_unused_for_longest_makes_room() -> None:
    """Two places, three answers."""
    cache = AnswerCache(10, 2)
    cache.put("a", ONE)
    cache.put("b", ONE)
    cache.get("a")
    cache.put("c", ONE)
    assert cache.get("b") is None
    assert cache.get("a") is cache.get("c") is ONE


def test_it_can_be_off() -> None:
    """No places or no time: nothing is kept."""
    for cache in (AnswerCache(0, 10), AnswerCache(10, 0)):
        cache.put("k", ONE)
        assert cache.get("k") is None
