"""How long somebody wants things remembered, and whether to be asked first."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the two columns; empty means what the operator has set."""
    op.add_column("usher_memory_people", sa.Column("retention_days", sa.Double()))
    op.add_column("usher_memory_people", sa.Column("confirm", sa.Text()))


def downgrade() -> None:
    """Remove them."""
    op.drop_column("usher_memory_people", "confirm")
    op.drop_column("usher_memory_people", "retention_days")
