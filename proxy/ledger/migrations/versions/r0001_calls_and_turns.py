"""Calls and turns: the first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make both tables with their indexes."""
    op.create_table(
        "usher_calls",
        sa.Column("writer", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("line", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("user", sa.Text()),
        sa.Column("context", sa.Text(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("answered_model", sa.Text()),
        sa.Column("prompt_tokens", sa.BigInteger()),
        sa.Column("cached_tokens", sa.BigInteger()),
        sa.Column("completion_tokens", sa.BigInteger()),
        sa.Column("reasoning_tokens", sa.BigInteger()),
        sa.Column("cost_nano_usd", sa.BigInteger()),
        sa.Column("cost_source", sa.Text()),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("latency_ms", sa.Double()),
        sa.Column("tools_sent", sa.Integer()),
        sa.Column("tools_deferred", sa.Integer()),
        sa.Column("tokens_avoided", sa.BigInteger()),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("cache_write_tokens", sa.BigInteger()),
        sa.Column("service_tier", sa.Text()),
        sa.Column("estimated", sa.Boolean(), nullable=False),
        sa.Column("detail", sa.Text()),
        sqlite_with_rowid=False,
    )
    op.create_index("usher_calls_request", "usher_calls", ["request_id"])
    op.create_index("usher_calls_started", "usher_calls", ["started_at"])
    op.create_table(
        "usher_turns",
        sa.Column("writer", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("line", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("user", sa.Text()),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("duration_ms", sa.Double()),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("kept", sa.Integer()),
        sa.Column("deferred", sa.Integer()),
        sa.Column("predicted", sa.Integer()),
        sa.Column("discovered", sa.Integer()),
        sa.Column("hits", sa.Integer()),
        sa.Column("unused", sa.Integer()),
        sa.Column("missed", sa.Integer()),
        sa.Column("tokens_avoided", sa.BigInteger()),
        sa.Column("detail", sa.Text()),
        sqlite_with_rowid=False,
    )
    op.create_index("usher_turns_request", "usher_turns", ["request_id"])
    op.create_index("usher_turns_started", "usher_turns", ["started_at"])
