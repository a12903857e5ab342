"""The ledger's URL is understood, or refused in one line before anything is started."""

import sqlite3
from pathlib import Path

import pytest

from proxy.errors import ConfigError
from proxy.ledger.location import (
    HEAD,
    check_sqlite,
    check_version,
    ledger_url,
    public_url,
    sqlite_path,
)


def test_without_a_setting_it_is_a_file_in_the_data_folder(tmp_path: Path) -> None:
    """Nothing has to be configured."""
    assert sqlite_path(ledger_url(None, tmp_path)) == tmp_path / "usher.db"


@pytest.mark.parametrize(
    ("url", "checked"),
    [
        ("sqlite:////var/usher.db", "sqlite+aiosqlite:////var/usher.db"),
        ("sqlite:///usher.db", "sqlite+aiosqlite:///usher.db"),
        ("postgres://u:p@h/d", "postgresql+asyncpg://u:p@h/d"),
        ("postgresql://h/d?sslmode=require", "postgresql+asyncpg://h/d?ssl=require"),
        ("postgresql+asyncpg://h/d", "postgresql+asyncpg://h/d"),
    ],
)
def test_known_urls(url: str, checked: str) -> None:
    """URLs as other tools write them get the driver that Usher uses."""
    assert ledger_url(url, Path("/data")) == checked


@pytest.mark.parametrize("url", ["mysql://h/d", "sqlite://", "usher.db", "", "sqlite:memory"])
def test_other_urls_are_refused(url: str) -> None:
    """The message names the setting and what would be right."""
    with pytest.raises(ConfigError, match=r"ledger\.url: use sqlite:///PATH or postgresql://"):
        ledger_url(url, Path("/data"))


def test_public_url_has_no_password() -> None:
    """What is printed tells where, not how to get in."""
    url = "postgresql+asyncpg://usher:secret@db:5432/books?ssl=require"
    assert public_url(url) == "postgresql://usher@db:5432/books"
    assert public_url("postgresql://usher:se/cr:et@db/books") == "postgresql://usher@db/books"
    assert public_url("sqlite+aiosqlite:////var/usher.db") == "sqlite:////var/usher.db"


def test_a_new_file_is_private(tmp_path: Path) -> None:
    """Only the owner may read who asked what."""
    check_sqlite(tmp_path / "new" / "usher.db")
    assert (tmp_path / "new" / "usher.db").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("path", ["/proc/nowhere/usher.db", "/dev/null/usher.db", "/proc/version"])
def test_a_place_that_cannot_be_written(path: str) -> None:
    """A wrong path and a read-only place are one clear line at the start."""
    with pytest.raises(ConfigError, match=rf"ledger\.url: cannot write {path}: "):
        check_sqlite(Path(path))


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """Somebody's notes are not overwritten."""
    notes = tmp_path / "notes.txt"
    notes.write_text("dear diary, " * 100)
    with pytest.raises(ConfigError, match="file is not a database"):
        check_sqlite(notes)
    assert notes.read_text().startswith("dear diary")


def test_a_locked_database_is_waited_for(tmp_path: Path) -> None:
    """Whoever holds the lock will let go; the start goes on."""
    path = tmp_path / "usher.db"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    check_sqlite(path)
    holder.close()


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    """An older Usher must not write into what it does not understand."""
    path = tmp_path / "usher.db"
    newer = sqlite3.connect(path)
    newer.execute("CREATE TABLE usher_version (version_num TEXT)")
    newer.execute("INSERT INTO usher_version VALUES ('9999')")
    newer.commit()
    newer.close()
    with pytest.raises(ConfigError, match=r"was written by a newer Usher \(schema 9999"):
        check_sqlite(path)


def test_the_same_and_older_schemas_are_fine() -> None:
    """Older ones are migrated."""
    for found in (None, "0000", HEAD):
        check_version("here", found)
