"""The arithmetic of the networks."""

import numpy as np

from proxy.memory.gate.network import SIZE, Network, read_inputs, read_texts, vectors_of
from proxy.memory.gate.pair import read_pair


def test_inputs_have_one_size() -> None:
    """Whatever is missing is zeros."""
    texts = read_texts(read_pair({"latest": "a, b", "conversation": []}))
    vectors = vectors_of(texts.all, np.ones((len(texts.all), SIZE), np.float32))
    whole, clauses = read_inputs(texts, vectors)
    assert (whole.shape, clauses.shape) == ((6 * SIZE + 8,), (2, SIZE))


def test_many_clauses_are_cut() -> None:
    """A long message costs no more than twelve."""
    texts = read_texts(read_pair({"latest": "x. " * 40, "conversation": []}))
    assert len(texts.clauses) == 12


def test_the_vote() -> None:
    """Members are averaged; letters count beside them; the threshold is taken off."""
    width = 2
    weights = {
        "clause_w0": np.zeros((SIZE, width)), "clause_b0": np.zeros(width),
        "focus_w0": np.zeros((width, 2)), "focus_b0": np.zeros(2),
        "join_w0": np.zeros((6 * SIZE + 8 + 3 * width, width)), "join_b0": np.ones(width),
        "last_w0": np.ones((width, 1)), "last_b0": np.zeros(1),
        "members": np.array(1), "letters": np.array(0.5), "shift": np.array(2.0),
    }  # fmt: skip
    network = Network(weights)
    whole, clauses = np.zeros(6 * SIZE + 8, np.float32), np.zeros((1, SIZE), np.float32)
    assert network.judge(whole, clauses) == 0.5
    assert network.judge(whole, clauses, letters=1.0) > 0.5
