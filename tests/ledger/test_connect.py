"""A database that cannot be had is refused with a reason, or waited for."""

from pathlib import Path

import pytest

from proxy.errors import ConfigError
from proxy.ledger.backend import Failure
from proxy.ledger.connect import check, open_backend
from proxy.ledger.location import ledger_url
from proxy.ledger.store import UsageQuery

pytestmark = pytest.mark.anyio


async def test_either_kind_opens_and_answers(url: str) -> None:
    """The same seam for a file and for a server."""
    backend = await open_backend(url)
    assert await (await backend.books()).usage(UsageQuery()) == []
    await backend.aclose()


def test_a_server_that_lets_us_in(postgres_url: str) -> None:
    """Nothing is said, and the schema is there."""
    check(ledger_url(postgres_url, Path()))


def test_a_server_that_refuses(postgres_url: str) -> None:
    """An error of the configuration."""
    with pytest.raises(ConfigError, match="does not exist"):
        check(ledger_url(f"{postgres_url}_nope", Path()))


def test_a_server_that_is_not_there() -> None:
    """It may come back, so this is no error of the configuration."""
    with pytest.raises(Failure, match=r"ledger\.url: postgresql://usher@127\.0\.0\.1:1/x: "):
        check("postgresql+asyncpg://usher@127.0.0.1:1/x")


def test_a_file_that_cannot_be_written() -> None:
    """Found out before anything is served."""
    with pytest.raises(ConfigError, match="cannot write"):
        check("sqlite+aiosqlite:////dev/null/usher.db")
