"""Keys are made, revoked and rotated by name."""

from pathlib import Path

import msgspec
import pytest

from proxy.errors import ConfigError
from proxy.keys.issue import describe_key, new_key, revoke_key, rotate_key
from proxy.keys.key import GatewayKey, Limits
from proxy.keys.keyfile import read_keys


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def limited(key: GatewayKey) -> GatewayKey:
    return msgspec.structs.replace(key, limits=Limits(rpm=10), tenant="acme")


def test_a_name_is_given_once(path: Path) -> None:
    """Also not again after it was revoked: the ledger tells keys apart by name."""
    new_key(path, limited, "alice")
    revoke_key(path, "alice")
    with pytest.raises(ConfigError, match="there is a key alice already"):
        new_key(path, limited, "alice")


def test_unknown_and_revoked_names(path: Path) -> None:
    """Nothing is changed."""
    with pytest.raises(ConfigError, match="there is no key bob"):
        revoke_key(path, "bob")
    new_key(path, limited, "alice")
    revoke_key(path, "alice")
    with pytest.raises(ConfigError, match="the key alice is revoked"):
        rotate_key(path, "alice", 0)


def test_a_rotation_keeps_everything_but_the_secret(path: Path) -> None:
    """Limits and tenant stay; without grace the old secret is gone at once."""
    old = new_key(path, limited, "alice")
    new = rotate_key(path, "alice", 0)
    (key,) = read_keys(path)
    assert old != new
    assert (key.limits, key.tenant, key.previous) == (Limits(rpm=10), "acme", None)


def test_a_description_shows_no_hash(path: Path) -> None:
    """It goes to terminals and admin pages."""
    new_key(path, limited, "alice")
    rotate_key(path, "alice", 3600)
    (key,) = read_keys(path)
    shown = describe_key(key)
    assert key.proof.digest not in str(shown)
    assert (shown["id"], shown["tenant"], shown["state"]) == (key.proof.id, "acme", "active")
    assert shown["old_secret_until"] > key.created_at
