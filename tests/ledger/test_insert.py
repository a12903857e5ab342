"""Lines go into SQLite's tables once, also when nobody heard that they did."""

import sqlite3
from collections.abc import Iterator

import pytest

from proxy.ledger.encode import Numbered
from proxy.ledger.insert import Insert, insert_missing
from proxy.ledger.sqlitefile import SCHEMA
from proxy.ledger.usage import Row
from tests.fakes.lines import row

LINES = 2 * 512 + 128 + 8 + 1


@pytest.fixture
def file() -> Iterator[sqlite3.Connection]:
    """An empty ledger in memory."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(SCHEMA.read_text())
    yield connection
    connection.close()


def lines(count: int, first: int = 1) -> Numbered:
    return Numbered([row(request_id=f"req_{number}") for number in range(count)], 7, first)


def write(file: sqlite3.Connection, batch: Numbered) -> list[int]:
    """The numbers that are in the file afterwards, in the order they went in."""
    insert = Insert("usher_calls", Row)
    insert.run(file, insert.prepare(batch))
    return [number for (number,) in file.execute("SELECT line FROM usher_calls ORDER BY rowid")]


@pytest.mark.parametrize("count", [0, 1, 512, LINES])
def test_a_batch_that_is_written_again(file: sqlite3.Connection, count: int) -> None:
    """The commit succeeded, its acknowledgement got lost: nothing is there twice."""
    numbers = list(range(1, 1 + count))
    assert write(file, lines(count)) == numbers
    assert write(file, lines(count)) == numbers


def test_a_batch_that_grew_before_it_was_written_again(file: sqlite3.Connection) -> None:
    """What is new in it goes in."""
    write(file, lines(3))
    assert write(file, lines(5)) == [1, 2, 3, 4, 5]


def test_other_lines_of_the_same_request(file: sqlite3.Connection) -> None:
    """Rounds share an id, and two writers share numbers."""
    write(file, Numbered([row(), row()], 7, 1))
    write(file, Numbered([row()], 7, 3))
    assert write(file, Numbered([row()], 8, 1)) == [1, 2, 3, 1]


def test_new_lines_are_not_looked_for(file: sqlite3.Connection) -> None:
    """Where every request has the same id, each batch would go through all lines so far."""
    asked: list[str] = []
    insert = Insert("usher_calls", Row)
    file.set_trace_callback(lambda said: asked.append(said) if "SELECT 1" in said else None)
    for count, first, asks in ((3, 1, 1), (3, 4, 0), (3, 7, 0), (3, 4, 4), (1, 9, 2), (1, 10, 0)):
        asked.clear()
        insert.run(file, insert.prepare(Numbered([row()] * count, 7, first)))
        assert len(asked) == asks, f"line {first} and on"
    assert file.execute("SELECT count(*) FROM usher_calls").fetchone() == (10,)


def test_asking_needs_no_scan(file: sqlite3.Connection) -> None:
    """It happens whenever a batch is written again."""
    values = next(iter(lines(1)))
    plan = file.execute(f"EXPLAIN QUERY PLAN {insert_missing('usher_calls', Row)}", values)
    assert "USING INDEX usher_calls_request" in str(plan.fetchall())
