"""What triage did comes in; counters for Prometheus go out."""

from typing import Protocol

from prometheus_client import CollectorRegistry, Counter

from proxy.ledger.usage import Tokens
from proxy.triage.plan import Plan
from proxy.triage.session import Session

IDLE = "nothing to do"
OUTCOMES = ("pays", "forced", "cold", "emergency", "too little", "declined by cost")
_IDLE = (
    "nothing large enough", "too short", "compaction", "decided before", "being decided",
    "another worker decided",
)  # fmt: skip


class Decided(Protocol):
    """The outcome of a decision, as far as it is counted."""

    @property
    def reason(self) -> str: ...

    @property
    def plan(self) -> Plan | None: ...


class TriageTally:
    """Counters; every label has a short list of values.

    `prefix` is `moved` for the first request under a changed prefix and `stable` for the others,
    so that the share of cached tokens before and after a plan can be told.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._plans = Counter(
            "usher_triage_plans_total",
            "Decisions about long conversations, by what came of them.",
            ["outcome"],
            registry=registry,
        )
        self._moves = Counter(
            "usher_triage_prefix_moves_total",
            "Requests whose prefix is not that of the request before.",
            registry=registry,
        )
        self._prompt = Counter(
            "usher_triage_prompt_tokens_total",
            "Prompt tokens of conversations under triage.",
            ["prefix"],
            registry=registry,
        )
        self._cached = Counter(
            "usher_triage_cached_tokens_total",
            "Those of them that came from the provider's cache.",
            ["prefix"],
            registry=registry,
        )
        self._saved = Counter(
            "usher_triage_tokens_saved_total",
            "Tokens of old messages kept out of prompts, estimated.",
            registry=registry,
        )

    def moved(self) -> None:
        """A prefix changed."""
        self._moves.inc()

    def answered(self, session: Session, tokens: Tokens) -> None:
        """A prompt was read by the model."""
        prefix = "moved" if session.moved else "stable"
        self._prompt.labels(prefix).inc(tokens.prompt or 0)
        self._cached.labels(prefix).inc(tokens.cached or 0)
        if session.scene.mode == "on":
            self._saved.inc(session.saved())

    def decided(self, outcome: Decided) -> None:
        """A decision was made, or could not be."""
        self._plans.labels(_label(outcome.reason)).inc()

    def adopted(self, reason: str) -> None:
        """A plan took effect at once."""
        self._plans.labels(_label(reason)).inc()


def _label(reason: str) -> str:
    """One of a short list: whatever else was in the way counts as failed."""
    if reason in OUTCOMES:
        return reason
    return IDLE if reason in _IDLE else "failed"
