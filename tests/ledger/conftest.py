"""Both kinds of database for the tests of the ledger: a SQLite file and a PostgreSQL server."""

import asyncio
import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from proxy.ledger.location import ledger_url

REQUIRED = os.environ.get("USHER_TEST_POSTGRES") == "required"
"""Set where a missing server must be a failure: in `.ci/run`."""


def find_postgres() -> Path | None:
    """The folder of the newest installed server's programs."""
    on_path = shutil.which("initdb")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name)
    return Path(on_path).parent if on_path else next(reversed(folders), None)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A server of our own on loopback, without fsync; the URL of its first database."""
    programs = find_postgres()
    if programs is None:
        if REQUIRED:
            pytest.fail("USHER_TEST_POSTGRES=required, and no PostgreSQL server is installed")
        pytest.skip("no PostgreSQL server is installed")
    folder = Path(tempfile.mkdtemp(prefix="usher-postgres-"))
    # The server refuses to run as root; Debian's package brings a user for it.
    owner = "postgres" if getpass.getuser() == "root" else getpass.getuser()
    shutil.chown(folder, owner)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = folder / "data"
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"

    def run(*words: str) -> None:
        subprocess.run(
            words, user=owner, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=60
        )

    run(str(programs / "initdb"), "-D", str(data), "-A", "trust", "-U", "usher", "--no-sync")
    log = str(folder / "log")
    control = str(programs / "pg_ctl")
    run(control, "-D", str(data), "-o", options, "-l", log, "-w", "start")
    try:
        yield f"postgresql://usher@127.0.0.1:{port}/postgres"
    finally:
        run(control, "-D", str(data), "-m", "immediate", "stop")
        shutil.rmtree(folder)


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """The URL of an empty database."""
    name = f"t{uuid.uuid4().hex}"

    async def create() -> None:
        connection = await asyncpg.connect(postgres_server)
        await connection.execute(f"CREATE DATABASE {name}")
        await connection.close()

    asyncio.run(create())
    return postgres_server.removesuffix("postgres") + name


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a file that is not there yet."""
    return f"sqlite:///{tmp_path}/usher.db"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The checked URL of an empty database of either kind."""
    found: str = request.getfixturevalue(f"{request.param}_url")
    return ledger_url(found, tmp_path)
