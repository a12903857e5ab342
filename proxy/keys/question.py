"""What happened to a key's leases and what it used come in; the script's question goes out."""

import secrets

import msgspec

from proxy.keys.budget import month_of

LEASE_SECONDS = 30
"""So long does a request of a killed process take up room."""

Held = tuple[str, int]
"""A lease: its id, and the tokens that are reserved for it."""


class Wish(msgspec.Struct, omit_defaults=True):
    """Who wants to enter, and what its key allows."""

    lease: Held
    day: int
    month: int
    rpm: int | None = None
    tpm: int | None = None
    concurrent: int | None = None
    budget_day: int | None = None
    budget_month: int | None = None


class Sums(msgspec.Struct):
    """What the ledger knows of a month: fields of the script's hash, nano-USD as text."""

    month: int
    sums: list[tuple[str, str]]


class Question(msgspec.Struct, omit_defaults=True):
    """What the script is told and asked about one key; `now` replaces its clock in tests."""

    ttl: int
    batch: str
    left: list[Held]
    running: list[Held]
    tokens: int
    costs: list[tuple[int, int, str]]
    ledger: Sums | None = None
    enter: Wish | None = None
    now: float | None = None


class Batch:
    """What a key's requests gave back and used since it was last said; said once by its id."""

    __slots__ = ("costs", "id", "left", "tokens")

    def __init__(self) -> None:
        self.id = secrets.token_hex(8)
        self.left: list[Held] = []
        self.tokens = 0
        self.costs: dict[int, int] = {}

    def question(self) -> Question:
        """The batch in the script's words."""
        costs = [(day, month_of(day), str(nano)) for day, nano in self.costs.items()]
        used = self.id if self.tokens or costs else ""
        return Question(LEASE_SECONDS, used, self.left, [], self.tokens, costs)
