"""The built-in gate."""

import pytest

from proxy.memory.gate.model import load_gate, load_meaning

SEED = [
    ("Please remember that I prefer answers in Japanese", True),
    ("Forget where I live", True),
    ("Actually I moved to Osaka, update my location", True),
    ("I prefer answers in Japanese from now on", False),
    ("my name is Ali", False),
    ("I work as a product designer at YankoDesign, can you help me draft an email?", False),
    ("thanks, that was helpful", False),
]


def test_the_seeds_examples() -> None:
    """All eight on the right side; the yes only after an offer."""
    gate = load_meaning()
    for text, asked in SEED:
        assert ((gate({"latest": text}) or 0) >= 0.5) is asked, text
    offer = {"role": "assistant", "content": "Would you like me to remember that you use Neovim?"}
    other = {"role": "assistant", "content": "Should I send the email?"}
    assert (gate({"latest": "yes, remember that", "conversation": [offer]}) or 0) >= 0.5
    assert (gate({"latest": "yes please", "conversation": [offer]}) or 0) >= 0.5
    assert (gate({"latest": "yes please", "conversation": [other]}) or 1) < 0.5
    assert gate({"latest": ""}) is None


def test_the_same_answer_every_time() -> None:
    """Deterministic, also beside other texts."""
    gate = load_meaning()
    state = {"latest": "Merk dir, dass ich in Graz wohne.", "conversation": []}
    assert gate(state) == gate(state) == load_meaning()(state)


def test_it_answers_at_once() -> None:
    """The better form is loaded behind the first answers."""
    gate = load_gate(pytest.fail)
    assert gate({"latest": "Remember that I live in Porto."}) is not None
