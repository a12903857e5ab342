"""A database that cannot be had is refused with a reason, or waited for."""

from pathlib import Path

import pytest

from proxy.errors import ConfigError
from proxy.ledger.connect import check_server, describe_failure, open_database
from proxy.ledger.database import FAILURES
from proxy.ledger.location import ledger_url

pytestmark = pytest.mark.anyio


def test_a_server_that_lets_us_in(postgres_url: str) -> None:
    """Nothing is said, and the schema is there."""
    check_server(ledger_url(postgres_url, Path()))


def test_a_database_that_does_not_exist(postgres_url: str) -> None:
    """The server's own words, without the password."""
    url = ledger_url(postgres_url.replace("usher@", "usher:secret@") + "_nope", Path())
    with pytest.raises(ConfigError, match=r"ledger\.url: postgresql://usher@.*does not exist") as e:
        check_server(url)
    assert "secret" not in e.value.message


def test_a_server_that_is_not_there() -> None:
    """It may come back, so this is no error of the configuration."""
    with pytest.raises(OSError, match="Connect call failed"):
        check_server("postgresql+asyncpg://usher@127.0.0.1:1/x")


async def test_a_folder_that_cannot_be_made() -> None:
    """Failures of the disk are failures, not bugs."""
    with pytest.raises(FAILURES) as caught:
        await open_database("sqlite+aiosqlite:////dev/null/usher.db")
    assert describe_failure("sqlite+aiosqlite:////dev/null/usher.db", caught.value).startswith(
        "ledger.url: sqlite:////dev/null/usher.db: "
    )


def test_failures_are_one_line() -> None:
    """Also those that say nothing themselves."""
    assert (
        describe_failure("sqlite:///x", TimeoutError()) == "ledger.url: sqlite:///x: TimeoutError"
    )
    assert describe_failure("sqlite:///x", OSError("a\nb")) == "ledger.url: sqlite:///x: a"
    assert describe_failure("sqlite:///x", ConfigError("no")) == "no"
