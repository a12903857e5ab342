"""Both kinds of database for the tests of the store."""

from pathlib import Path

import pytest

from proxy.memory.database import memory_url
from tests.ledger.conftest import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url", "store_url"]


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database of either kind; without a server, PostgreSQL is skipped."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    return memory_url(url, tmp_path)
