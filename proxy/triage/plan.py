"""What was decided about a conversation, as an immutable value and its stored bytes."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal["drop", "note", "clear"]


class Act(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What becomes of one unit; `text` is the note, or the label of what was dropped."""

    kind: Kind
    text: str
    number: int


class Plan(msgspec.Struct, frozen=True):
    """A decision, anchored at the hash of the conversation that it was made for.

    `acts` are in force, those of earlier plans included: a plan only adds. `pending` were decided
    but did not pay yet. `kept` are units that stay, with the user turn in which that was decided.
    All are keyed by the chain hash at the unit's end, in hex.
    """

    anchor: str
    acts: dict[str, Act] = {}
    pending: dict[str, Act] = {}
    kept: dict[str, int] = {}
    parent: str | None = None
    reason: str = ""
    made_at: float = 0.0

    @property
    def name(self) -> str:
        """The eight digits that headers show."""
        return self.anchor[:8]

    def encode(self) -> bytes:
        """The stored form."""
        return msgspec.json.encode(self)

    def adopt(self, anchor: str, reason: str, now: float) -> "Plan":
        """A plan of the same conversation in which everything pending is in force."""
        return Plan(anchor, {**self.acts, **self.pending}, {}, self.kept, self.anchor, reason, now)


_PLAN = msgspec.json.Decoder(Plan)


def decode_plan(value: bytes) -> Plan | None:
    """Reads what `encode` wrote; None for anything else, as after an upgrade."""
    try:
        return _PLAN.decode(value)
    except msgspec.DecodeError:
        return None


class Sent(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """How a request went up: under which plan, with which edits before its end, and when.

    `state` is a hash of the edits, empty without any. `density` is how many bytes of it were a
    token, once the provider has said it and it matters. `misses` counts the latest requests of
    which the provider said that nothing came from its cache although it could have.
    """

    plan: str
    state: str
    at: float
    density: float = 0.0
    misses: int = 0


_SENT = msgspec.json.Decoder(Sent)


def decode_sent(value: bytes) -> Sent | None:
    """Reads a stored Sent; None for anything else."""
    try:
        return _SENT.decode(value)
    except msgspec.DecodeError:
        return None


def count_acts(acts: Mapping[str, Act]) -> dict[str, int]:
    """How many units each kind of act is for."""
    counts = {"drop": 0, "note": 0, "clear": 0}
    for act in acts.values():
        counts[act.kind] += 1
    return counts
