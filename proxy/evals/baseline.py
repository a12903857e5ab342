"""A file of figures that were reached once comes in; what has become worse goes out."""

from collections.abc import Callable
from pathlib import Path

import orjson

from proxy.errors import ConfigError
from proxy.evals.next_tool import evaluate_next_tool
from proxy.evals.rankers import Ranker
from proxy.evals.retrieval import evaluate_retrieval
from proxy.wire import JSON, JSONObject

Measure = Callable[[Path, str, Ranker], JSONObject]
MEASURES: dict[str, tuple[Measure, str]] = {
    "retrieval": (evaluate_retrieval, "recall"),
    "next-tool": (evaluate_next_tool, "hit"),
}


def read_baseline(path: Path) -> JSONObject:
    """Read a baseline file: {tolerance, sets: [{kind, set, ranker, figures}]}."""
    try:
        baseline: JSON = orjson.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"{path.name}: not JSON: {error.msg}") from error
    if not isinstance(baseline, dict) or not isinstance(baseline.get("sets"), list):
        raise ConfigError(f"{path.name}: no list of `sets`")
    if not baseline["sets"]:
        raise ConfigError(f"{path.name}: `sets` is empty, so nothing would be compared")
    if not _is_number(baseline.get("tolerance", 0.0)):
        raise ConfigError(f"{path.name}: `tolerance` is no number")
    for number, entry in enumerate(baseline["sets"], 1):
        _check_entry(entry, f"{path.name}: set {number}")
    return baseline


def measure_entry(entry: JSONObject, root: Path, ranker: Ranker) -> JSONObject:
    """The figures of one entry, measured now."""
    if entry.get("kind") not in MEASURES:
        raise ConfigError(f"baseline: no kind {entry.get('kind')!r}")
    measure, key = MEASURES[entry["kind"]]
    figures: JSONObject = measure(root / entry["set"], entry["ranker"], ranker)[key]
    return figures


def find_regressions(entry: JSONObject, figures: JSONObject, tolerance: float) -> list[str]:
    """One line for every figure that fell by more than the tolerance."""
    place = f"{entry['set']} {entry['ranker']}"
    return [
        f"{place}: {entry['kind']}@{depth} fell from {before} to {figures.get(depth)}"
        for depth, before in entry["figures"].items()
        if figures.get(depth, 0.0) < before - tolerance
    ]


def _check_entry(entry: JSON, where: str) -> None:
    if not isinstance(entry, dict):
        raise ConfigError(f"{where} is no object")
    for key in ("kind", "set", "ranker"):
        if not isinstance(entry.get(key), str):
            raise ConfigError(f"{where}: `{key}` is no text")
    figures = entry.get("figures")
    if not isinstance(figures, dict) or not all(map(_is_number, figures.values())):
        raise ConfigError(f"{where}: `figures` are no numbers by depth")


def _is_number(value: JSON) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
