"""Sentence vectors of a pair come in; the probability that it asks for a change of memory goes out.

A few small networks that were trained apart vote. They see the message as a whole, without its
quotations and clause by clause, and the answer before it, alone and multiplied with the message: so
a "yes" means what the question means. Training is in `train/gate`; here is only arithmetic.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxy.memory.gate.pair import Pair, split_clauses

Matrix = NDArray[np.float32]

SIZE = 512
"""Of a sentence vector."""
MOST_CLAUSES = 12
ASKS = ("?", "？", "؟")
_GAIN = SIZE**0.5 / 2
"""Brings vectors of length one to the size that the networks were trained on."""


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of a pair that need vectors; empty ones need none."""

    whole: tuple[str, str, str, str]
    """The message, the answer before it, that one's last clause, the message without quotations."""
    clauses: tuple[str, ...]
    figures: tuple[float, ...]

    @property
    def all(self) -> list[str]:
        """Each of them once."""
        return [text for text in dict.fromkeys((*self.whole, *self.clauses)) if text]


def read_texts(pair: Pair) -> Texts:
    """What the networks read of a pair."""
    latest, before = pair.latest.strip(), pair.before
    parts = split_clauses(latest)
    head = MOST_CLAUSES * 2 // 3
    if len(parts) > MOST_CLAUSES:
        parts = parts[:head] + parts[head - MOST_CLAUSES :]
    last = (split_clauses(before) or [""])[-1]
    figures = (
        min(len(latest), 800) / 200,
        len(parts) / 8,
        float(bool(before)),
        float(any(mark in latest for mark in ASKS)),
        float(latest.endswith(ASKS)),
        float(pair.quotes),
        float(before.endswith(ASKS)),
        float(len(latest) < 25),
    )
    return Texts((latest, before, last, pair.own), tuple(parts), figures)


def read_inputs(texts: Texts, vectors: Mapping[str, Matrix]) -> tuple[Matrix, Matrix]:
    """One row with everything about the wholes, and a row per clause."""
    none = np.zeros(SIZE, np.float32)
    latest, before, last, own = (vectors.get(text, none) * _GAIN for text in texts.whole)
    rows = [vectors[clause] for clause in texts.clauses] or [none]
    together = (before * latest * (8 / _GAIN), last * latest * (8 / _GAIN))
    wholes = (latest, before, last, own, *together, np.array(texts.figures, np.float32))
    return np.concatenate(wholes).astype(np.float32), (np.stack(rows) * _GAIN).astype(np.float32)


class Network:
    """The vote of the networks in a file of weights."""

    def __init__(self, weights: Mapping[str, NDArray[Any]]) -> None:
        self._weights = {name: array.astype(np.float32) for name, array in weights.items()}
        self._members = int(self._weights.pop("members"))
        self._letters = float(self._weights.pop("letters"))
        self._shift = float(self._weights.pop("shift"))

    def judge(
        self, whole: Matrix, clauses: Matrix, letters: float = 0.0, ease: float = 0.0
    ) -> float:
        """The probability; the threshold was moved to one half when the weights were written.

        `letters` is the logit of the model that reads the wording, which sentence vectors blur; it
        weighs as much as the networks together. `ease` lowers the threshold.
        """
        votes = [self._vote(member, whole, clauses) for member in range(self._members)]
        logit = sum(votes) / len(votes) + self._letters * letters - self._shift + ease
        return float(1 / (1 + np.exp(-logit)))

    def _vote(self, member: int, whole: Matrix, clauses: Matrix) -> float:
        def layer(name: str, rows: Matrix) -> Matrix:
            product: Matrix = rows @ self._weights[f"{name}_w{member}"]
            return product + self._weights[f"{name}_b{member}"]

        hidden = np.maximum(layer("clause", clauses), 0)
        focus = np.exp(_calm(layer("focus", hidden)))
        pooled = (focus / focus.sum(axis=0)).T @ hidden
        seen = np.concatenate([whole, pooled.ravel(), hidden.max(axis=0)])
        return float(layer("last", np.maximum(layer("join", seen), 0))[0])


def _calm(rows: Matrix) -> Matrix:
    calmed: Matrix = rows - rows.max(axis=0)
    return calmed


def vectors_of(texts: Sequence[str], rows: Matrix) -> dict[str, Matrix]:
    """Vectors by text."""
    return dict(zip(texts, rows, strict=True))
