"""Labelled messages come in; how well the built-in memory gate finds requests goes out."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal

import orjson

from proxy.errors import ConfigError
from proxy.evals.lines import read_lines
from proxy.memory.gate.model import Gate, load_meaning, load_words
from proxy.tools.semantic import has_semantic
from proxy.wire import JSONObject

Form = Literal["auto", "meaning", "words"]
THRESHOLD = 0.5


@dataclass(frozen=True, slots=True)
class Judged:
    """A labelled message with the gate's probability."""

    row: JSONObject
    probability: float
    ms: float


def open_gate(form: Form) -> Gate:
    """The gate in one of its forms; auto is what a gateway here would use."""
    if form == "auto":
        form = "meaning" if has_semantic() else "words"
    return load_meaning() if form == "meaning" else load_words()


def evaluate_gate(path: Path, gate: Gate) -> tuple[JSONObject, list[Judged]]:
    """Figures of a file of labelled rows, and each row's score.

    A row has `latest`, `label` and maybe `context` (messages before it), `lang`, `kind` and
    `doubtful`; doubtful rows are reported apart.
    """
    judged = [_judge(row, gate) for row in read_rows(path)]
    clear = [one for one in judged if not one.row.get("doubtful")]
    figures: JSONObject = {"rows": len(judged), **_rates(clear), "threshold": THRESHOLD}
    figures["doubtful"] = _rates([one for one in judged if one.row.get("doubtful")])
    for name in ("lang", "kind"):
        figures[f"by_{name}"] = {key: _rates(group) for key, group in _groups(clear, name).items()}
    figures["ms_p50"] = round(median(one.ms for one in judged), 3)
    return figures, judged


def dump(judged: Sequence[Judged]) -> Iterator[str]:
    """One line per row: its id, score and label."""
    for number, one in enumerate(judged, 1):
        line = {
            "id": one.row.get("id", number),
            "score": round(one.probability, 4),
            "label": one.row["label"],
        }
        yield orjson.dumps(line).decode()


def read_rows(path: Path) -> list[JSONObject]:
    """The rows of a JSONL file. Raises ConfigError for one that is not labelled."""
    rows = read_lines(path)
    for row, where in rows:
        if not isinstance(row.get("latest"), str):
            raise ConfigError(f"{where}: `latest` is missing or no text")
        if row.get("label") not in (0, 1):
            raise ConfigError(f"{where}: `label` is not 0 or 1")
        if not isinstance(row.get("context") or [], list):
            raise ConfigError(f"{where}: `context` is no list of messages")
    return [row for row, _ in rows]


def _judge(row: JSONObject, gate: Gate) -> Judged:
    state = {"latest": row["latest"], "conversation": row.get("context") or []}
    begun = time.process_time()
    probability = gate(state)
    return Judged(row, probability or 0.0, (time.process_time() - begun) * 1000)


def _rates(judged: Sequence[Judged]) -> JSONObject:
    """Shares of those that should pass, and of those that should not, that do."""
    asked = [one.probability >= THRESHOLD for one in judged if one.row["label"]]
    others = [one.probability >= THRESHOLD for one in judged if not one.row["label"]]
    return {
        "recall": round(sum(asked) / len(asked), 4) if asked else None,
        "false_positive_rate": round(sum(others) / len(others), 4) if others else None,
        "positives": len(asked),
        "negatives": len(others),
    }


def _groups(judged: Sequence[Judged], name: str) -> Mapping[str, list[Judged]]:
    groups: dict[str, list[Judged]] = {}
    for one in judged:
        groups.setdefault(str(one.row.get(name, "")), []).append(one)
    return dict(sorted(groups.items()))
