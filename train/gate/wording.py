"""Labelled rows come in; the linear model over wordings that `proxy.memory.gate.words` runs goes out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from proxy.memory.gate.words import BUCKETS, read_features
from train.gate.rows import Row, pair_of, weight_of

Numbers = NDArray[np.int64]
_COST = 100.0
"""Of a row that is judged wrong, against large weights."""
_STEEP = 1.5
"""How much more a rare feature counts than a common one."""
_ORDINARY = 2.5
"""How much more an ordinary utterance counts here than for the networks, which need it less."""


@dataclass(frozen=True)
class Wording:
    """Whole numbers of eight bits, as they are stored."""

    weights: Numbers
    rarities: Numbers
    scale: float


def features_of(rows: Sequence[Row]) -> list[Numbers]:
    return [np.array(sorted(read_features(pair_of(row))), np.int64) for row in rows]


def learn(rows: Sequence[Row], features: Sequence[Numbers]) -> Wording:
    """Logistic regression; features of one row only are left out."""
    counts = np.bincount(np.concatenate(features), minlength=BUCKETS)
    rarity = np.maximum(np.log(len(rows) / (1 + counts)), 0.05) ** _STEEP
    rarities = np.maximum(1, np.round(rarity * 255 / rarity.max())).astype(np.int64)
    heard = rarities * (counts > 1)
    solver: Any = LogisticRegression(
        C=_COST, solver="liblinear", dual=True, max_iter=300, random_state=0
    )
    solver.fit(
        _table(features, rarities, heard),
        [row["label"] for row in rows],
        [weight_of(row) * (_ORDINARY if row["set"] == "public" else 1.0) for row in rows],
    )
    products = solver.coef_.ravel() * heard
    scale = float(np.abs(products).max()) / 127
    return Wording(np.round(products / scale).astype(np.int64), rarities, scale)


def _table(features: Sequence[Numbers], rarities: Numbers, heard: Numbers) -> Any:
    """A row of length one per row, but for what is not heard."""
    sizes = [len(found) for found in features]
    norms = [math.sqrt((rarities[found] ** 2).sum()) for found in features]
    flat = np.concatenate(features)
    values = heard[flat] / np.repeat(norms, sizes)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return sparse.csr_matrix((values, flat, starts), shape=(len(features), BUCKETS))


def score(wording: Wording, features: Sequence[Numbers]) -> NDArray[np.float64]:
    """What `Words.score` says, faster."""
    table = _table(features, wording.rarities, wording.weights)
    found: NDArray[np.float64] = np.asarray(table.sum(axis=1)).ravel() * wording.scale
    return found
