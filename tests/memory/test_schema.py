"""The tables."""

from proxy.memory.schema import metadata


def test_every_row_belongs_to_somebody() -> None:
    """Tenant, user and scope begin every primary key."""
    for table in metadata.sorted_tables:
        assert [c.name for c in table.primary_key][:3] == ["tenant", "user", "scope"]
