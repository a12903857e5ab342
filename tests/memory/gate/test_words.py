"""The form without numpy."""

from proxy.memory.gate.model import load_words
from proxy.memory.gate.pair import Pair
from proxy.memory.gate.words import BUCKETS, Words


def test_it_is_arithmetic() -> None:
    """Without weights everything is even; a higher threshold lets less through."""
    pair = Pair("", (("remember me", False),))
    assert Words([0] * BUCKETS, 1.0, 0.0).judge(pair) == 0.5
    assert Words([0] * BUCKETS, 1.0, 2.0).judge(pair) < 0.2


def test_clear_cases() -> None:
    """It lets requests through and stops small talk."""
    gate = load_words()
    asked = gate({"latest": "Please remember that I live in Porto."})
    said = gate({"latest": "thanks, that was helpful"})
    assert asked is not None
    assert said is not None
    assert asked > 0.5 > said
    assert gate({"latest": " "}) is None
