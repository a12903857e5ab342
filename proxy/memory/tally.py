"""Ended runs of the memory agent come in; a counter for Prometheus goes out."""

from typing import Literal, TypeAlias, get_args

from prometheus_client import CollectorRegistry, Counter

from proxy.memory.agent import Run
from proxy.observe.metrics import Tally

Unbegun: TypeAlias = Literal["rate_limited", "busy"]
RunOutcome: TypeAlias = Literal[
    "changed",
    "pending",
    "refused",
    "nothing",
    "timeout",
    "too_many_calls",
    "unavailable",
    "aborted",
    "failed",
    "rate_limited",
    "busy",
]
_FAILURES: dict[str, RunOutcome] = {
    "timeout": "timeout",
    "upstream_timeout": "timeout",
    "too_many_calls": "too_many_calls",
    "unavailable": "unavailable",
    "aborted": "aborted",
}
_KINDS: dict[str, RunOutcome] = {
    "update": "changed",
    "delete": "changed",
    "pending": "pending",
    "error": "refused",
    "reject": "refused",
    "stale": "refused",
    "taken": "refused",
}


class RunTally:
    """`usher_memory_runs_total{outcome}`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        text = "Messages that were to change what is remembered, by what came of it."
        counter = Counter("usher_memory_runs_total", text, ["outcome"], registry=registry)
        self._runs: Tally[RunOutcome] = Tally(counter, get_args(RunOutcome))

    def end(self, run: Run) -> None:
        """A run ended."""
        self._runs.add(outcome_of(run))

    def refuse(self, why: Unbegun) -> None:
        """There was to be one, and too much was going on."""
        self._runs.add(why)


def outcome_of(run: Run) -> RunOutcome:
    """One word: a failure first, although what was done before it stays; else the best change."""
    if run.failure is not None:
        return _FAILURES.get(run.failure, "failed")
    found = {_KINDS.get(outcome.kind, "nothing") for outcome in run.outcomes}
    order: tuple[RunOutcome, ...] = ("changed", "pending", "refused")
    return next((outcome for outcome in order if outcome in found), "nothing")
