"""The form without numpy."""

import time

import pytest

from proxy.memory.gate.model import load_words
from proxy.memory.gate.pair import Pair, read_pair
from proxy.memory.gate.words import BUCKETS, Words, read_features


def say(latest: str, before: str = "") -> Pair:
    """A message after an answer."""
    said = [{"role": "assistant", "content": before}] if before else []
    return read_pair({"latest": latest, "conversation": said})


def test_it_is_arithmetic() -> None:
    """Without weights everything is even; a higher threshold lets less through."""
    pair = say("remember me")
    even = [0] * BUCKETS
    assert Words(even, even, 1.0, 0.0).judge(pair) == 0.5
    assert Words(even, even, 1.0, 2.0).judge(pair) < 0.2


def test_rare_wordings_dilute_the_rest() -> None:
    """The same weight counts less in a message that says much else."""
    pair = say("remember me")
    weights = [10] * BUCKETS
    plain = Words(weights, [1] * BUCKETS, 1.0, 0.0).score(pair)
    assert Words(weights, [2] * BUCKETS, 1.0, 0.0).score(pair) == pytest.approx(plain / 2)


def test_clear_cases() -> None:
    """It lets requests through and stops small talk."""
    gate = load_words()
    asked = gate({"latest": "Please remember that I live in Porto."})
    said = gate({"latest": "thanks, that was helpful"})
    assert asked is not None
    assert said is not None
    assert asked > 0.5 > said
    assert gate({"latest": " "}) is None


def test_an_answer_is_read_with_its_question() -> None:
    """The same word is likelier to be a request when the question was an offer to remember."""
    words = load_words().words
    for yes, offer, other in (
        ("ja", "Soll ich mir das merken?", "Soll ich die Mail senden?"),
        ("yes please", "Shall I remember that?", "Shall I send the letter?"),
    ):
        assert words.score(say(yes, offer)) > words.score(say(yes, other)) + 1


def test_scripts_without_spaces() -> None:
    """A clause that is one long word still shares features with others that ask the same."""
    one = read_features(say("犬の名前を覚えておいて"))
    two = read_features(say("住所を覚えておいて"))
    assert len(one & two) > 20


def test_marks_that_most_leave_out() -> None:
    """Arabic and Hebrew read the same with their vowels and without."""
    assert read_features(say("تذكّر أنني نباتيّ")) == read_features(say("تذكر أنني نباتي"))


def test_a_long_message_takes_bounded_time() -> None:
    """What is pasted does not hold up the gate; its beginning and end are read."""
    pasted = " ".join(f"word{number}" for number in range(3_000))
    begun = time.process_time()
    found = read_features(say(f"{pasted} remember that I am left-handed"))
    assert time.process_time() - begun < 0.1
    assert read_features(say("left-handed")) & found
