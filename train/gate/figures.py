"""Labelled rows and their scores come in; the gate's figures go out, as lines to print."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxy.memory.gate.pair import ease_of
from train.gate.rows import FOREIGN, ORDINARY, Row

Scores = NDArray[np.float64]


def is_clear(row: Row, name: str = "dev") -> bool:
    return bool(row["set"] == name and not row.get("doubtful"))


def threshold_for(rows: Sequence[Row], scores: Scores, recall: float) -> float:
    """The score that this share of the clear requests of the development set reaches."""
    good = [s for r, s in zip(rows, scores, strict=True) if is_clear(r) and r["label"]]
    return float(np.sort(good)[int((1 - recall) * len(good))])


def even(rows: Sequence[Row], networks: Scores, words: Scores) -> float:
    """What the words must be multiplied with to be spread on the development set as the networks."""
    dev = [i for i, row in enumerate(rows) if row["set"] == "dev"]
    return float(networks[dev].std() / words[dev].std())


@dataclass(frozen=True)
class Nested:
    """Scores of rows as if each fold were judged with a blend and threshold chosen on the others."""

    fold: NDArray[np.int64]
    networks: Scores
    words: Scores

    def passed(self, rows: Sequence[Row], recall: float) -> NDArray[np.bool_]:
        passed = np.zeros(len(rows), bool)
        for k in sorted(set(self.fold.tolist())):
            others = np.flatnonzero((self.fold != k) & (self.fold >= 0))
            here = np.flatnonzero(self.fold == k)
            known = [rows[i] for i in others]
            share = even(known, self.networks[others], self.words[others])
            blend = self.networks + share * self.words
            ease = np.array([ease_of(rows[i]["latest"]) for i in here])
            passed[here] = blend[here] + ease >= threshold_for(known, blend[others], recall)
        return passed


def report(rows: Sequence[Row], passed: NDArray[np.bool_]) -> Iterator[str]:
    """Recall and false passes by set, and of the development set by language and kind."""
    for name in FOREIGN:
        clear = [i for i, row in enumerate(rows) if is_clear(row, name)]
        yield f"{name}: {_rates(rows, passed, clear)}"
    ordinary = [i for i, r in enumerate(rows) if is_clear(r, "public") and r["kind"] in ORDINARY]
    yield f"public, ordinary kinds: {_rates(rows, passed, ordinary)}"
    for key in ("lang", "kind"):
        groups: dict[str, list[int]] = {}
        for i, row in enumerate(rows):
            if is_clear(row):
                groups.setdefault(row[key], []).append(i)
        parts = [
            f"{value} {_counts(rows, passed, index)}"
            for value, index in sorted(groups.items(), key=lambda item: -len(item[1]))
        ]
        yield f"{key} (found/asked, passed/others): " + ", ".join(parts)


def _rates(rows: Sequence[Row], passed: Any, index: Iterable[int]) -> str:
    good = [i for i in index if rows[i]["label"]]
    bad = [i for i in index if not rows[i]["label"]]
    recall = f"recall {passed[good].mean():.3f} of {len(good)}, " if good else ""
    return f"{recall}false passes {passed[bad].mean():.3f} of {len(bad)}"


def _counts(rows: Sequence[Row], passed: Any, index: Iterable[int]) -> str:
    good = [i for i in index if rows[i]["label"]]
    bad = [i for i in index if not rows[i]["label"]]
    return f"{int(passed[good].sum())}/{len(good)} {int(passed[bad].sum())}/{len(bad)}"
