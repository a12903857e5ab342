"""Labelled answers in; the threshold that keeps a promise, and how honest the numbers are, out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import orjson

from proxy.errors import ConfigError
from proxy.judge.verdict import Verdict
from proxy.wire import JSON, JSONObject

BINS = 10
VERSION = 1


@dataclass(frozen=True, slots=True)
class Labelled:
    """One judged example: a yes/no with its truth, or a choice with whether it was right.

    `probability` is that of yes, or of the chosen label.
    """

    probability: float
    truth: bool


@dataclass(frozen=True, slots=True)
class Target:
    """What a threshold has to reach on the examples: precision or recall of at least `value`."""

    kind: Literal["precision", "recall"]
    value: float


@dataclass(frozen=True, slots=True)
class Bin:
    """Examples whose probabilities fall between `low` and `high`: stated and true shares."""

    low: float
    high: float
    count: int
    stated: float
    true: float


@dataclass(frozen=True, slots=True)
class Fit:
    """The threshold and what it does; None when no threshold reaches the target."""

    threshold: float | None
    precision: float | None
    recall: float | None
    examples: int
    positives: int
    calibration_error: float
    bins: tuple[Bin, ...]


@dataclass(frozen=True, slots=True)
class Locked:
    """A calibrated threshold and what it was measured with: other wording, other threshold."""

    threshold: float
    question_hash: str
    model: str


Lock = Mapping[str, Locked]


def fit_threshold(examples: Sequence[Labelled], target: Target) -> Fit:
    """The lowest threshold with the wanted precision, or the highest with the wanted recall."""
    positives = sum(example.truth for example in examples)
    found = _search(examples, positives, target)
    precision, recall = _measure(examples, positives, found) if found is not None else (None, None)
    bins = reliability(examples)
    return Fit(
        threshold=found,
        precision=precision,
        recall=recall,
        examples=len(examples),
        positives=positives,
        calibration_error=_error(bins, len(examples)),
        bins=bins,
    )


def reliability(examples: Sequence[Labelled]) -> tuple[Bin, ...]:
    """Ten equal bins: how probable the judge said, how often it was so."""
    groups: dict[int, list[Labelled]] = {}
    for example in examples:
        groups.setdefault(min(BINS - 1, int(example.probability * BINS)), []).append(example)
    return tuple(
        Bin(
            low=number / BINS,
            high=(number + 1) / BINS,
            count=len(group),
            stated=sum(example.probability for example in group) / len(group),
            true=sum(example.truth for example in group) / len(group),
        )
        for number, group in sorted(groups.items())
    )


def write_lock(backend: str, locked: Lock) -> bytes:
    """The lock file."""
    questions = {
        name: {"threshold": one.threshold, "question_hash": one.question_hash, "model": one.model}
        for name, one in sorted(locked.items())
    }
    body = {"version": VERSION, "backend": backend, "questions": questions}
    return orjson.dumps(body, option=orjson.OPT_INDENT_2) + b"\n"


def read_lock(data: bytes) -> Lock:
    """The thresholds of a lock file; raises ConfigError."""
    try:
        found: JSONObject = orjson.loads(data)
        if found["version"] != VERSION:
            raise ConfigError("the calibration file is of another version of Usher")
        return {name: _read_locked(one) for name, one in found["questions"].items()}
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        raise ConfigError("the calibration file is not one of `usher calibrate`") from None


def find_drift(lock: Lock, verdict: Verdict, hashes: Mapping[str, str]) -> Sequence[str]:
    """A sentence for every calibrated question that now is another one, or another model's."""
    found = []
    for name, one in lock.items():
        model = verdict.models.get(name)
        if model is not None and model != one.model:
            found.append(f"{name} was calibrated on {one.model} and is answered by {model}")
        if name in hashes and hashes[name] != one.question_hash:
            found.append(f"{name} was calibrated with another wording")
    return found


def find_thresholds(lock: Lock, verdict: Verdict, hashes: Mapping[str, str]) -> Mapping[str, float]:
    """The calibrated thresholds of what was asked in these words and answered by that model."""
    return {
        name: one.threshold
        for name, one in lock.items()
        if verdict.models.get(name) == one.model and hashes.get(name) == one.question_hash
    }


def _search(examples: Sequence[Labelled], positives: int, target: Target) -> float | None:
    thresholds = sorted({example.probability for example in examples})
    if target.kind == "recall":
        thresholds.reverse()
    for threshold in thresholds:
        precision, recall = _measure(examples, positives, threshold)
        value = precision if target.kind == "precision" else recall
        if value is not None and value >= target.value:
            return threshold
    return None


def _measure(
    examples: Sequence[Labelled], positives: int, threshold: float
) -> tuple[float | None, float | None]:
    passed = [example for example in examples if example.probability >= threshold]
    right = sum(example.truth for example in passed)
    precision = right / len(passed) if passed else None
    return precision, right / positives if positives else None


def _error(bins: Sequence[Bin], examples: int) -> float:
    """Expected calibration error."""
    return sum(abs(b.stated - b.true) * b.count for b in bins) / max(1, examples)


def _read_locked(one: JSON) -> Locked:
    threshold = float(one["threshold"])
    if not 0 <= threshold <= 1:
        raise ValueError("threshold")
    return Locked(threshold, str(one["question_hash"]), str(one["model"]))
