"""The tables that the code writes are the tables that the migrations make."""

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine
from sqlalchemy.dialects import registry
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateTable

from proxy.ledger.location import HEAD
from proxy.ledger.migrate import configuration, upgrade
from proxy.ledger.schema import calls, metadata, turns


def test_migrations_make_the_tables() -> None:
    """A column that is added to the schema needs a migration."""
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        upgrade(connection)
        options = {"version_table": "usher_version"}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_head_is_the_newest_migration() -> None:
    """Start-up trusts the constant, so that it need not load alembic."""
    assert ScriptDirectory.from_config(configuration()).get_current_head() == HEAD


def test_both_dialects_can_express_it() -> None:
    """Token counts are 64 bits wide on PostgreSQL too, whose key refuses a line's second copy."""
    for table in (calls, turns):
        assert "BIGINT" in str(CreateTable(table).compile(dialect=create_dialect("sqlite")))
        made = str(CreateTable(table).compile(dialect=create_dialect("postgresql")))
        assert "BIGINT" in made
        assert "PRIMARY KEY (writer, line)" in made


def create_dialect(name: str) -> Dialect:
    dialect: Dialect = registry.load(name)()
    return dialect
