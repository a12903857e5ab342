"""A connection in; its schema at the newest version out."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

from proxy.ledger.schema import version

FOLDER = Path(__file__).with_name("migrations")


def upgrade(connection: Connection) -> None:
    """Run the migrations that are missing, inside the connection's transaction."""
    command.upgrade(configuration(connection), "head")


def configuration(connection: Connection | None = None) -> Config:
    """What alembic needs to know; also for `alembic revision` while developing."""
    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["version_table"] = version.name
    return config
