"""A ledger URL in; the open database out, with only those libraries loaded that it needs."""

import asyncio
from contextlib import suppress
from pathlib import Path

from proxy.errors import ConfigError
from proxy.ledger.backend import Backend, Failure, Refused
from proxy.ledger.location import check_sqlite, ledger_url, sqlite_path
from proxy.ledger.sqlitefile import SqliteFile
from proxy.settings import Ledger as Settings


async def open_backend(url: str) -> Backend:
    """An open database with the schema of this version; raises ConfigError or Failure."""
    if sqlite_path(url) is not None:
        return await SqliteFile.open(url)
    from proxy.ledger.database import open_database  # noqa: PLC0415 - SQLAlchemy: 0.3 s, 25 MB

    return await open_database(url)


def check_ledger(settings: Settings, data: Path) -> None:
    """Before anything listens: raises ConfigError for a ledger that can never work."""
    if settings.enabled:
        with suppress(Failure):
            check(ledger_url(settings.url, data))


def check(url: str) -> None:
    """Find out what can be found out before the start; takes a moment, so not on the event loop.

    Raises ConfigError for a database that can never work, Failure for one that may come back.
    """
    path = sqlite_path(url)
    if path is not None:
        check_sqlite(path)
        return
    try:
        asyncio.run(_open_and_close(url))
    except Refused as error:
        raise ConfigError(str(error), param="ledger.url") from None


async def _open_and_close(url: str) -> None:
    backend = await open_backend(url)
    await backend.aclose()
