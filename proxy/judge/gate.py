"""A verdict about memory in; whether the memory agent runs, and what hint it gets, out."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from proxy.judge.fused import MEMORY_FORGET, MEMORY_KEY, MEMORY_REQUEST, MEMORY_UPDATE
from proxy.judge.questions import Calibration, ChoiceAnswer
from proxy.judge.verdict import Verdict
from proxy.judge_settings import MemoryGate

DEFAULT_THRESHOLD = 0.5
"""Measured by the seed: requests score 0.88 to 0.98, everything else 0.47 or less."""


@dataclass(frozen=True, slots=True)
class Gated:
    """`error_pass`: nothing was measured, so the agent runs. Hints are None when unsure."""

    status: Literal["pass", "skip", "error_pass"]
    probability: float | None = None
    key: str | None = None
    update: bool | None = None
    forget: bool | None = None
    calibration: Calibration = "none"

    @property
    def runs(self) -> bool:
        """Whether the memory agent runs."""
        return self.status != "skip"


def read_gate(
    verdict: Verdict,
    settings: MemoryGate,
    keys: Collection[str] = (),
    default_threshold: float = DEFAULT_THRESHOLD,
) -> Gated:
    """Read the gate's answers.

    The operator's threshold comes first, then a calibrated one, then the default.
    """
    probability = verdict.noul(MEMORY_REQUEST)
    calibrated = verdict.thresholds.get(MEMORY_REQUEST, default_threshold)
    threshold = calibrated if settings.threshold is None else settings.threshold
    if probability is None:
        return Gated("error_pass")
    calibration = verdict.calibration(MEMORY_REQUEST)
    if probability < threshold:
        return Gated("skip", probability, calibration=calibration)
    return Gated(
        "pass",
        probability,
        key=_key(verdict.choice(MEMORY_KEY), keys, settings.category_threshold),
        update=_yes(verdict.noul(MEMORY_UPDATE)),
        forget=_yes(verdict.noul(MEMORY_FORGET)),
        calibration=calibration,
    )


def _key(answer: ChoiceAnswer | None, keys: Collection[str], threshold: float) -> str | None:
    if answer is None or answer.label not in keys:
        return None
    return answer.label if answer.probabilities.get(answer.label, 0.0) >= threshold else None


def _yes(probability: float | None) -> bool | None:
    return None if probability is None else probability >= 0.5
