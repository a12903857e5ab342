"""The tables."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection

from proxy.memory.bank import Bank
from proxy.memory.database import Database
from proxy.memory.schema import metadata, version

pytestmark = pytest.mark.anyio


async def test_every_row_belongs_to_somebody() -> None:
    """Tenant, user and scope begin every primary key."""
    for table in metadata.sorted_tables:
        assert [c.name for c in table.primary_key][:3] == ["tenant", "user", "scope"]


async def test_migrations_make_these_tables(store_url: str) -> None:
    """On SQLite and on PostgreSQL, column by column."""
    database = Database(store_url)
    await Bank(database, 1).start()
    async with database.reading() as connection:
        assert await connection.run_sync(_differences) == []
    await database.aclose()


def _differences(connection: Connection) -> list[object]:
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    found = compare_metadata(context, metadata)
    return [one for one in found if getattr(one[1], "name", None) != version.name]
