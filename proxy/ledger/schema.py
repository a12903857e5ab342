"""The ledger's tables, as SQLAlchemy sees them on SQLite and on PostgreSQL."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

metadata = MetaData()

calls = Table(
    "usher_calls",
    metadata,
    # Who wrote it and as which line: a batch that is written twice leaves one copy.
    # A key on PostgreSQL only: on SQLite `proxy.ledger.insert` keeps that promise.
    Column("writer", BigInteger, primary_key=True, autoincrement=False),
    Column("line", BigInteger, primary_key=True, autoincrement=False),
    Column("day", Integer, nullable=False),  # since 1970-01-01, UTC
    Column("request_id", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("user", Text),
    Column("context", Text, nullable=False),
    Column("round", Integer, nullable=False),
    Column("provider", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("answered_model", Text),
    Column("prompt_tokens", BigInteger),
    Column("cached_tokens", BigInteger),
    Column("completion_tokens", BigInteger),
    Column("reasoning_tokens", BigInteger),
    Column("cost_nano_usd", BigInteger),
    Column("cost_source", Text),
    Column("started_at", Double, nullable=False),
    Column("latency_ms", Double),
    Column("tools_sent", Integer),
    Column("tools_deferred", Integer),
    Column("tokens_avoided", BigInteger),
    Column("outcome", Text, nullable=False),
    Column("cache_write_tokens", BigInteger),
    Column("service_tier", Text),
    Column("estimated", Boolean, nullable=False),
    Column("detail", Text),
    Index("usher_calls_request", "request_id"),
    Index("usher_calls_started", "started_at"),
)

turns = Table(
    "usher_turns",
    metadata,
    Column("writer", BigInteger, primary_key=True, autoincrement=False),
    Column("line", BigInteger, primary_key=True, autoincrement=False),
    Column("day", Integer, nullable=False),  # since 1970-01-01, UTC
    Column("request_id", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("user", Text),
    Column("model", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("duration_ms", Double),
    Column("outcome", Text, nullable=False),
    Column("kept", Integer),
    Column("deferred", Integer),
    Column("predicted", Integer),
    Column("discovered", Integer),
    Column("hits", Integer),
    Column("unused", Integer),
    Column("missed", Integer),
    Column("tokens_avoided", BigInteger),
    Column("detail", Text),
    Index("usher_turns_request", "request_id"),
    Index("usher_turns_started", "started_at"),
)

version = Table("usher_version", MetaData(), Column("version_num", String(32), primary_key=True))
"""Which migration the database has; alembic writes it. Its own name: databases get shared."""
