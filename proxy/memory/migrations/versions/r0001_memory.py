"""Memories, their events, people's choices and what the gate said."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_WHOSE = ("tenant", "user", "scope")


def upgrade() -> None:
    """Make the four tables."""
    _create(
        "usher_memory",
        sa.Column("key", sa.Text(), primary_key=True),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("rev", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.Column("request_id", sa.Text()),
    )
    _create(
        "usher_memory_events",
        sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("op", sa.Text(), nullable=False),
        sa.Column("old_value", sa.Text()),
        sa.Column("new_value", sa.Text()),
        sa.Column("reason", sa.Text()),
        sa.Column("score", sa.Double()),
        sa.Column("request_id", sa.Text()),
        sa.Column("at", sa.Double(), nullable=False),
    )
    _create(
        "usher_memory_people",
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("writable", sa.Boolean(), nullable=False),
        sa.Column("wipes", sa.Integer(), nullable=False),
        sa.Column("events", sa.BigInteger(), nullable=False),
    )
    _create(
        "usher_memory_gates",
        sa.Column("chain", sa.Text(), primary_key=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("score", sa.Double()),
        sa.Column("hint", sa.Text()),
        sa.Column("request_id", sa.Text()),
        sa.Column("detail", sa.Text()),
        sa.Column("at", sa.Double(), nullable=False),
    )


def downgrade() -> None:
    """Remove them."""
    for table in ("gates", "people", "events"):
        op.drop_table(f"usher_memory_{table}")
    op.drop_table("usher_memory")


def _create(name: str, *columns: sa.Column[object]) -> None:
    whose = [sa.Column(column, sa.Text(), primary_key=True) for column in _WHOSE]
    op.create_table(name, *whose, *columns)
