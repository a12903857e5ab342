"""The ring knows whose secret it is, and follows the file without ever falling open."""

import asyncio
import io
import json
from pathlib import Path

import msgspec
import pytest

from proxy.errors import ConfigError
from proxy.keys.issue import new_key, revoke_key, rotate_key
from proxy.keys.key import GatewayKey, Limits
from proxy.keys.keyfile import Keys
from proxy.keys.limiter import check_workers
from proxy.keys.ring import KeyRing
from proxy.observe.log import configure
from proxy.settings import Log
from tests.fakes.until import until


def plain(key: GatewayKey) -> GatewayKey:
    return key


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def test_without_keys_the_door_is_open(path: Path) -> None:
    """Until the first key is made; then it is closed while the gateway runs."""
    ring = KeyRing(path)
    ring.load()
    before = ring.open
    secret = new_key(path, plain, "alice")
    assert ring.refresh()
    assert (before, ring.open) == (True, False)
    found = ring.find(secret)
    assert found is not None
    assert found.name == "alice"


def test_nobodys_secrets(path: Path) -> None:
    """A provider's key, a wrong secret with a right id, and nothing."""
    secret = new_key(path, plain, "alice")
    ring = KeyRing(path)
    ring.load()
    for wrong in ("", "sk-proj-abc", secret[:-1], f"{secret}x", secret.upper(), "sk-usher-é-é"):
        assert ring.find(wrong) is None


def test_a_revoked_key_ends_without_a_restart(path: Path) -> None:
    """The next request is refused; the door stays closed though no key is left."""
    secret = new_key(path, plain, "alice")
    ring = KeyRing(path)
    ring.load()
    revoke_key(path, "alice")
    assert ring.find(secret) is not None
    ring.refresh()
    assert ring.find(secret) is None
    assert not ring.open


def test_rotation_with_a_grace_period(path: Path) -> None:
    """Both secrets work, then only the new one."""
    now = [0.0]
    old = new_key(path, plain, "alice")
    new = rotate_key(path, "alice", 3600)
    ring = KeyRing(path, wall=lambda: now[0])
    ring.load()
    assert ring.find(old) == ring.find(new)
    now[0] = 1e12
    assert ring.find(old) is None
    assert ring.find(new) is not None


@pytest.mark.parametrize("content", ["{", '{"version": 1, "keys": []}', None])
def test_a_file_that_breaks_keeps_the_old_keys(path: Path, content: str | None) -> None:
    """Half-written, emptied or deleted: who was in stays in, and nobody else gets in."""
    secret = new_key(path, plain, "alice")
    ring = KeyRing(path)
    ring.load()
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    assert not ring.refresh()
    assert not ring.refresh()
    assert ring.find(secret) is not None
    assert not ring.open


def test_an_unchanged_file_is_not_read_again(path: Path) -> None:
    """A refresh costs one look at the file's date."""
    new_key(path, plain, "alice")
    ring = KeyRing(path)
    ring.load()
    assert not ring.refresh()


def test_what_happens_is_told(path: Path) -> None:
    """By a line of Usher's own log, and by a count."""
    out, counted = io.StringIO(), list[str]()
    ring = KeyRing(path, log=configure(Log(format="json"), out), count=counted.append)
    new_key(path, plain, "alice")
    ring.refresh()
    path.write_text("{")
    ring.refresh()
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["keys_reloaded", "keys_not_reloaded"]
    assert "keys.file" in lines[1]["reason"]
    assert counted == ["ok", "failed"]


def test_keys_whose_limits_cannot_hold_are_refused(path: Path) -> None:
    """With several workers a limited key is an error at the start; at a reload it lets nobody in.

    The rest of the file is in force, so that nobody who was revoked stays in for its sake.
    """

    def check(keys: Keys) -> None:
        check_workers(2, keys)

    secret = new_key(path, plain, "alice")
    ring = KeyRing(path, check=check)
    ring.load()
    new_key(path, lambda key: msgspec.structs.replace(key, limits=Limits(rpm=1)), "bob")
    revoke_key(path, "alice")
    assert ring.refresh()
    alice, bob = ring.keys
    assert (ring.open, ring.shut) == (False, False)
    assert (ring.holds(alice), ring.holds(bob)) == (True, False)
    assert ring.find(secret) is None
    with pytest.raises(ConfigError, match="limits of key bob would hold 2 times"):
        KeyRing(path, check=check).load()


def test_an_open_ring_shuts_for_a_file_that_cannot_be_read(path: Path) -> None:
    """There are keys, nobody knows which: not open any more, until a key is known."""
    ring = KeyRing(path)
    ring.load()
    path.write_text("{")
    assert not ring.refresh()
    assert (ring.open, ring.shut, ring.unenforced) == (False, True, True)
    path.unlink()
    assert not ring.refresh()
    assert ring.shut
    new_key(path, plain, "alice")
    assert ring.refresh()
    assert (ring.open, ring.shut, ring.unenforced) == (False, False, False)


@pytest.mark.anyio
async def test_the_file_is_followed(path: Path) -> None:
    """A key works a moment after it was made."""
    ring = KeyRing(path)
    ring.load()
    watch = asyncio.ensure_future(ring.watch(0.01))  # noqa: TID251 - ended three lines below
    secret = new_key(path, plain, "alice")
    await until(lambda: ring.find(secret) is not None)
    watch.cancel()
