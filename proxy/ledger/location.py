"""Where the ledger lives: the setting in, a checked SQLAlchemy URL out, without SQLAlchemy."""

import sqlite3
from pathlib import Path

from proxy.errors import ConfigError

HEAD = "0002"
"""The newest of `proxy/ledger/migrations`; known here so that start-up needs no alembic."""

_SQLITE = "sqlite+aiosqlite:///"
_POSTGRES = ("postgres", "postgresql", "postgresql+asyncpg")
_PROBE_SECONDS = 0.25


def ledger_url(url: str | None, data: Path) -> str:
    """The URL with its async driver; without one, a SQLite file in the data folder.

    Raises ConfigError for any other kind of database.
    """
    if url is None:
        return f"{_SQLITE}{data / 'usher.db'}"
    scheme, separator, rest = url.partition("://")
    if separator and scheme in {"sqlite", "sqlite+aiosqlite"} and rest.startswith("/"):
        return f"{_SQLITE}{rest[1:]}"
    if separator and scheme in _POSTGRES:
        # asyncpg says `ssl` for what every other client calls `sslmode`.
        return f"postgresql+asyncpg://{rest}".replace("sslmode=", "ssl=")
    raise ConfigError(
        "ledger.url: use sqlite:///PATH or postgresql://USER@HOST/DATABASE", param="ledger.url"
    )


def sqlite_path(url: str) -> Path | None:
    """The file behind a SQLite URL, or None for a server."""
    return Path(url.removeprefix(_SQLITE)) if url.startswith(_SQLITE) else None


def public_url(url: str) -> str:
    """The URL as it may be printed: without the password and without options."""
    scheme, _, rest = url.partition("://")
    credentials, at, place = rest.partition("?")[0].rpartition("@")
    user = credentials.partition(":")[0]
    return f"{scheme.partition('+')[0]}://{user}{at}{place}"


def check_sqlite(path: Path) -> None:
    """Open the file for writing and read its schema version; raises ConfigError if that fails.

    A database that is only locked passes: whoever holds it will let go.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        found = _probe(path)
    except (OSError, sqlite3.DatabaseError) as error:
        if "locked" in str(error):
            return
        raise ConfigError(f"ledger.url: cannot write {path}: {error}", param="ledger.url") from None
    check_version(str(path), found)


def check_version(where: str, found: str | None) -> None:
    """Refuse a database that a newer Usher has migrated; revisions are numbers of four digits."""
    if found is not None and found > HEAD:
        raise ConfigError(
            f"ledger.url: {where} was written by a newer Usher (schema {found}, this one knows "
            f"{HEAD}): upgrade, or use another database",
            param="ledger.url",
        )


def read_version(connection: sqlite3.Connection) -> str | None:
    """Which migration a file has; None for one that is new."""
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'usher_version'")
    if known.fetchone() is None:
        return None
    row = connection.execute("SELECT version_num FROM usher_version").fetchone()
    return None if row is None else str(row[0])


def _probe(path: Path) -> str | None:
    connection = sqlite3.connect(path, timeout=_PROBE_SECONDS, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        found = read_version(connection)
        connection.execute("ROLLBACK")
        return found
    finally:
        connection.close()
