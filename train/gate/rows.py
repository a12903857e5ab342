"""The labelled sets and the lists of phrases come in; all rows that the gate learns from go out."""

import json
from pathlib import Path
from typing import Any

from proxy.memory.gate.pair import Pair, read_pair
from train.gate.compose import compose, read_written

HERE = Path(__file__).parent
Row = dict[str, Any]
FOREIGN = ("dev", "public", "seed")
ORDINARY = {"general_task", "chitchat", "list_task", "reminder_task", "app_action"}
"""Kinds of the public set in which nothing resembles a request to remember but for its words."""
_WEIGHT = {"dev": 2.0, "public": 1.5, "seed": 1.5, "own": 0.5, "written": 1.2}


def load_rows() -> list[Row]:
    """All labelled rows, each once; `set` says where it is from."""
    rows: list[Row] = []
    for name in FOREIGN:
        for line in (HERE / "data" / f"gate_{name}.jsonl").read_text("utf-8").splitlines():
            rows += [{**json.loads(line), "set": name}]
    made = [{**row, "set": "own"} for row in compose(HERE / "phrases")]
    made += [{**row, "set": "written"} for row in read_written(HERE / "rows")]
    seen: set[str] = set()
    for row in made:
        known = json.dumps([row["latest"], row["context"]])
        if known not in seen:
            seen.add(known)
            rows.append(row)
    return rows


def is_foreign(row: Row) -> bool:
    """Whether the row is of a set that figures are reported on, and not made for training."""
    return row["set"] in FOREIGN


def pair_of(row: Row) -> Pair:
    return read_pair({"latest": row["latest"], "conversation": row.get("context") or []})


def weight_of(row: Row) -> float:
    return _WEIGHT[row["set"]] * (0.5 if row.get("doubtful") else 1.0)
