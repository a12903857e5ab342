"""Lines in from the event loop, batches out on the writer's thread; bounded, and never waiting."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from proxy.ledger.usage import Row, TurnRow

_LARGEST_BATCH = 2_000


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines with the numbers they keep however often they are written."""

    calls: list[tuple[int, Row]]
    turns: list[tuple[int, TurnRow]]

    def __len__(self) -> int:
        return len(self.calls) + len(self.turns)

    @property
    def full(self) -> bool:
        """There may be more where these came from."""
        return max(len(self.calls), len(self.turns)) >= _LARGEST_BATCH


class Queue:
    """Pending lines.

    One thread adds and one takes. Every step is a single operation on a deque or a plain
    attribute, so the interpreter's own lock is enough.
    """

    def __init__(self, capacity: int, wake: Callable[[], None]) -> None:
        self._calls: deque[Row] = deque()
        self._turns: deque[TurnRow] = deque()
        self._capacity = capacity
        self._urgent = max(1, min(_LARGEST_BATCH, capacity) // 2)
        self._wake = wake
        self._number = 0
        self.asleep = True
        self.dropped = 0

    def add_call(self, row: Row) -> None:
        """Keep a call, or count it as dropped when the database has been away for too long."""
        pending = len(self._calls)
        if pending >= self._capacity:
            self.dropped += 1
            return
        self._calls.append(row)
        if self.asleep or pending == self._urgent:
            self.asleep = False
            self._wake()

    def add_turn(self, turn: TurnRow) -> None:
        """Keep a turn; the same promise."""
        if len(self._turns) >= self._capacity:
            self.dropped += 1
            return
        self._turns.append(turn)
        if self.asleep:
            self.asleep = False
            self._wake()

    def take(self) -> Batch:
        """The oldest lines."""
        calls = [self._calls.popleft() for _ in range(min(_LARGEST_BATCH, len(self._calls)))]
        turns = [self._turns.popleft() for _ in range(min(_LARGEST_BATCH, len(self._turns)))]
        return Batch(
            [(self._next(), row) for row in calls], [(self._next(), turn) for turn in turns]
        )

    def __len__(self) -> int:
        return len(self._calls) + len(self._turns)

    def _next(self) -> int:
        self._number += 1
        return self._number
