"""Lines in from the event loop, batches out on the writer's thread; bounded, and never waiting."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from proxy.ledger.usage import Row, TurnRow

_LARGEST_BATCH = 2_000


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines with the numbers they keep however often they are written: counted on from a first."""

    calls: list[Row]
    turns: list[TurnRow]
    first_call: int
    first_turn: int

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
        self._next = 1
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
        first_call = self._next
        first_turn = first_call + len(calls)
        self._next = first_turn + len(turns)
        return Batch(calls, turns, first_call, first_turn)

    def __len__(self) -> int:
        return len(self._calls) + len(self._turns)
