"""The tables of memory, as SQLAlchemy sees them on SQLite and on PostgreSQL.

Every key begins with whose row it is, event numbers included: nobody can count another's.
"""

from sqlalchemy import BigInteger, Boolean, Column, Double, Integer, MetaData, String, Table, Text

metadata = MetaData()

WHOSE = ("tenant", "user", "scope")
"""The columns that say whose a row is."""

memories = Table(
    "usher_memory",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("user", Text, primary_key=True),
    Column("scope", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("rev", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("request_id", Text),
)

events = Table(
    "usher_memory_events",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("user", Text, primary_key=True),
    Column("scope", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False),
    Column("op", Text, nullable=False),
    Column("old_value", Text),
    Column("new_value", Text),
    Column("reason", Text),
    Column("score", Double),
    Column("request_id", Text),
    Column("at", Double, nullable=False),
)

people = Table(
    "usher_memory_people",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("user", Text, primary_key=True),
    Column("scope", Text, primary_key=True),
    Column("enabled", Boolean, nullable=False),
    Column("writable", Boolean, nullable=False),
    Column("wipes", Integer, nullable=False),
    Column("events", BigInteger, nullable=False),
    Column("retention_days", Double),
    Column("confirm", Text),
)

gates = Table(
    "usher_memory_gates",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("user", Text, primary_key=True),
    Column("scope", Text, primary_key=True),
    Column("chain", Text, primary_key=True),
    Column("status", Text, nullable=False),
    Column("score", Double),
    Column("hint", Text),
    Column("request_id", Text),
    Column("detail", Text),
    Column("at", Double, nullable=False),
)

version = Table(
    "usher_memory_version",
    MetaData(),  # alembic's own
    Column("version_num", String(32), primary_key=True),
)
