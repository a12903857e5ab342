"""A connection in; its schema at the newest version out."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection

from proxy.errors import ConfigError
from proxy.ledger.schema import version

FOLDER = Path(__file__).with_name("migrations")


def upgrade(connection: Connection) -> None:
    """Run the migrations that are missing, inside the connection's transaction.

    Raises ConfigError for a version that no Usher ever wrote.
    """
    try:
        command.upgrade(configuration(connection), "head")
    except CommandError as error:
        raise ConfigError(f"ledger.url: the schema is not Usher's: {error}") from None


def configuration(connection: Connection | None = None) -> Config:
    """What alembic needs to know; also for `alembic revision` while developing."""
    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["version_table"] = version.name
    return config


def render_sqlite(connection: Connection) -> str:
    """The schema of a migrated SQLite database as SQL, for `migrations/sqlite.sql`."""
    made = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
    head = connection.exec_driver_sql("SELECT version_num FROM usher_version").scalar()
    note = f"INSERT INTO usher_version VALUES ('{head}')"  # noqa: S608 - of our own making
    statements = [*made.scalars(), note]
    return ";\n".join(statements) + ";\n"
