"""The queue keeps, counts, and wakes the writer no more than needed."""

from proxy.ledger.queue import Queue
from tests.fakes.lines import row, turn


class Bell:
    def __init__(self) -> None:
        self.rung = 0

    def ring(self) -> None:
        self.rung += 1


def test_lines_come_out_in_order_with_numbers_of_their_own() -> None:
    """Numbers go on over batches: they are what makes a line unique."""
    queue = Queue(10, Bell().ring)
    for name in "abc":
        queue.add_call(row(request_id=name))
    queue.add_turn(turn())
    batch = queue.take()
    numbered = enumerate(batch.calls, batch.first_call)
    assert [(number, line.request_id) for number, line in numbered] == [
        (1, "a"),
        (2, "b"),
        (3, "c"),
    ]
    assert (batch.first_turn, len(batch.turns)) == (4, 1)
    queue.add_call(row())
    assert queue.take().first_call == 5
    assert len(queue.take()) == 0


def test_a_full_queue_counts_what_it_drops() -> None:
    """The oldest lines are kept: they are the ones that were promised first."""
    queue = Queue(2, Bell().ring)
    for name in "abcd":
        queue.add_call(row(request_id=name))
        queue.add_turn(turn(request_id=name))
    assert queue.dropped == 4
    assert [line.request_id for line in queue.take().calls] == ["a", "b"]


def test_only_the_first_line_wakes_the_writer() -> None:
    """While the writer is up, a line costs no signal."""
    bell = Bell()
    queue = Queue(100, bell.ring)
    for _ in range(10):
        queue.add_turn(turn())
        queue.add_call(row())
    assert bell.rung == 1


def test_a_filling_queue_wakes_the_writer_early() -> None:
    """By size as well as by time."""
    bell = Bell()
    queue = Queue(10, bell.ring)
    queue.asleep = False
    for _ in range(10):
        queue.add_call(row())
    assert bell.rung == 1


def test_a_full_batch_says_that_there_may_be_more() -> None:
    """So that a backlog is written without pauses."""
    queue = Queue(10_000, Bell().ring)
    for _ in range(2001):
        queue.add_call(row())
    assert queue.take().full
    assert not queue.take().full
