"""The values that go between the memory agent, the store and whoever is told about it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from proxy.wire import JSONObject


@dataclass(frozen=True, slots=True)
class Memory:
    """One stored memory."""

    key: str
    value: str
    tokens: int
    rev: int
    created_at: float
    updated_at: float

    def as_json(self) -> JSONObject:
        """What its owner is shown."""
        return {
            "key": self.key,
            "value": self.value,
            "token_count": self.tokens,
            "rev": self.rev,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
        }


@dataclass(frozen=True, slots=True)
class Store:
    """A wish to store a value that was found fit; `rev` is the one it replaces, 0 for none."""

    key: str
    value: str
    tokens: int
    rev: int | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """A wish to delete a key."""

    key: str
    rev: int | None = None


@dataclass(frozen=True, slots=True)
class Rename:
    """A wish to give a value another key."""

    key: str
    new_key: str
    rev: int | None = None


@dataclass(frozen=True, slots=True)
class Reject:
    """A wish that was refused before it came to the store; it is written down as an event."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class Hold:
    """A wish that waits for the user's own word; `*` is everything, to be forgotten."""

    key: str
    value: str | None
    reason: str


Change = Store | Delete | Rename | Reject | Hold


@dataclass(frozen=True, slots=True)
class Origin:
    """Where changes come from, for the event log."""

    request_id: str | None = None
    score: float | None = None
    op: str | None = None
    """What the log calls them, when it is neither set nor delete."""


Kind = Literal[
    "update", "delete", "error", "pending", "unchanged", "missing", "stale", "taken", "reject"
]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one change; `event` numbers the line in the log that can be undone."""

    kind: Kind
    key: str
    value: str | None = None
    old_value: str | None = None
    tokens: int = 0
    total: int = 0
    limit: int = 0
    reason: str | None = None
    event: int | None = None
    suggest: JSONObject | None = None
    rev: int = 0

    @property
    def told(self) -> bool:
        """Whether the client hears of it."""
        return self.kind in {"update", "delete", "error", "pending"}

    def as_artifact(self, request_id: str | None = None) -> JSONObject:
        """What the client is told: LibreChat's kinds, with real JSON where it has text."""
        artifact: JSONObject = {"type": self.kind, "key": self.key, "request_id": request_id}
        if self.kind == "error":
            return artifact | {
                "key": "system",
                "error_type": self.reason,
                "token_count": self.tokens,
                "total_tokens": self.total,
                "token_limit": self.limit,
                "suggest": self.suggest,
            }
        if self.kind == "update":
            artifact |= {"value": self.value, "token_count": self.tokens}
        if self.kind == "pending":
            waits: JSONObject = {"value": self.value} if self.value is not None else {}
            return artifact | waits | {"reason": self.reason, "confirm": self.event}
        if self.old_value is not None:
            artifact["old_value"] = self.old_value
        return artifact | {"undo": self.event}


@dataclass(frozen=True, slots=True)
class Person:
    """What somebody has chosen, and how often something of theirs was deleted."""

    enabled: bool = True
    writable: bool = True
    wipes: int = 0
    retention_days: float | None = None
    confirm: str | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that is remembered of somebody, by key."""

    person: Person
    memories: Sequence[Memory]

    def over(self, wider: "Snapshot") -> "Snapshot":
        """This one with what a wider one has beside it; a key of both has this one's value."""
        found = {memory.key: memory for memory in (*wider.memories, *self.memories)}
        wipes = self.person.wipes + wider.person.wipes
        person = replace(self.person, wipes=wipes)
        return Snapshot(person, [found[key] for key in sorted(found)])

    @property
    def tokens(self) -> int:
        """Of all values."""
        return sum(memory.tokens for memory in self.memories)
