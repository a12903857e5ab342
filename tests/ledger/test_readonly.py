"""Asking a file changes nothing about it, and needs no right to."""

import sqlite3
from pathlib import Path

import pytest

from proxy.errors import ConfigError
from proxy.ledger.location import ledger_url
from proxy.ledger.readonly import open_books
from proxy.ledger.status import Options
from proxy.ledger.store import UsageQuery
from proxy.ledger.writer import SqlLedger
from tests.fakes.lines import row, turn

pytestmark = pytest.mark.anyio


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A ledger that was written and closed."""
    ledger = SqlLedger(ledger_url(None, tmp_path), Options(flush_seconds=0.01))
    ledger.record(row())
    ledger.record_turn(turn())
    await ledger.aclose()
    return tmp_path / "usher.db"


async def test_the_books_are_read(path: Path) -> None:
    """Calls and turns."""
    with open_books(path) as books:
        assert books is not None
        assert [one["calls"] for one in await books.usage(UsageQuery(()))] == [1]
        assert [one["turns"] for one in await books.savings(UsageQuery(()))] == [1]


async def test_what_somebody_is_writing_is_seen(path: Path) -> None:
    """Also lines that are still in the log of the file."""
    ledger = SqlLedger(ledger_url(None, path.parent), Options(flush_seconds=0.01))
    ledger.record(row(request_id="another"))
    assert (await ledger.usage(UsageQuery(())))[0]["calls"] == 2
    with open_books(path) as books:
        assert books is not None
        assert [one["calls"] for one in await books.usage(UsageQuery(()))] == [2]
    await ledger.aclose()


async def test_an_old_file_has_to_be_upgraded_first(path: Path) -> None:
    """By somebody who may write; a newer one is refused."""
    for version in ("0001", "9999"):
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE usher_version SET version_num = ?", (version,))
        connection.close()
        if version == "0001":
            with open_books(path) as books:
                assert books is None
        else:
            with pytest.raises(ConfigError, match="newer Usher"), open_books(path):
                pass


async def test_what_is_no_ledger_is_one_line(tmp_path: Path) -> None:
    """A file of something else, and a folder."""
    other = tmp_path / "other.db"
    other.write_text("not a database" * 100)
    for place in (other, tmp_path):
        with pytest.raises(ConfigError, match=r"ledger\.url: cannot read"), open_books(place):
            pass
