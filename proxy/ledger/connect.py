"""A ledger URL in; an open, migrated database out, or the reason why not in one line."""

import asyncio

from sqlalchemy.exc import SQLAlchemyError

from proxy.errors import ConfigError
from proxy.ledger.database import FAILURES, Database
from proxy.ledger.location import public_url


async def open_database(url: str) -> Database:
    """An open database with the schema of this version; raises ConfigError or one of FAILURES."""
    database = Database(url)
    try:
        await database.migrate()
    except (ConfigError, *FAILURES):
        await database.aclose()
        raise
    return database


def check_server(url: str) -> None:
    """Connect once, on a loop of its own; raises ConfigError when the server refuses us.

    A server that does not answer may come back: that is OSError or TimeoutError.
    """
    try:
        asyncio.run(_open_and_close(url))
    except SQLAlchemyError as error:
        raise ConfigError(describe_failure(url, error), param="ledger.url") from None


def describe_failure(url: str, error: Exception) -> str:
    """One line without statements, parameters and passwords."""
    if isinstance(error, ConfigError):
        return error.message
    cause = getattr(error, "orig", None) or error
    # The asyncpg adapter puts the name of the driver's class in front.
    text = str(cause).partition("\n")[0].rpartition("'>: ")[2]
    return f"ledger.url: {public_url(url)}: {text or type(error).__name__}"


async def _open_and_close(url: str) -> None:
    database = await open_database(url)
    await database.aclose()
