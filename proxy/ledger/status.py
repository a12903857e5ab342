"""What the two sides of the ledger know of each other: options in, how it goes out."""

from collections.abc import Callable
from dataclasses import dataclass

from proxy.ledger.usage import Row


@dataclass(frozen=True, slots=True)
class Options:
    """How the writer behaves; `price` fills in missing costs, on the writer's thread."""

    flush_seconds: float = 0.2
    queue_rows: int = 10_000
    keep_days: int = 90
    keep_rows: int | None = None
    close_seconds: float = 5.0
    answer_seconds: float = 10.0
    price: Callable[[Row], Row] = lambda row: row


@dataclass(slots=True)
class Status:
    """Plain numbers that one thread sets and the other reads."""

    written: int = 0
    writing: int = 0
    failures: int = 0
    degraded: str | None = None
    closing: bool = False
    deadline: float = 0.0

    def failed(self, reason: str) -> bool:
        """Count a failure; true when it is news."""
        self.failures += 1
        news = self.degraded != reason
        self.degraded = reason
        return news

    def recovered(self) -> bool:
        """Lines are being written again; true when it is news."""
        news = self.degraded is not None
        self.degraded = None
        return news
