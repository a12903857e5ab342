"""What an operator wants with a key in; the changed key file out."""

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from proxy.errors import ConfigError
from proxy.keys.key import GatewayKey, new_secret
from proxy.keys.keyfile import Keys, change_keys
from proxy.wire import JSONObject


def new_key(path: Path, wanted: Callable[[GatewayKey], GatewayKey], name: str) -> str:
    """Add a key and return its secret, which is shown once and kept nowhere.

    `wanted` fills in what the key may do. Raises ConfigError for a name that is taken.
    """
    secret, proof = new_secret()
    key = wanted(GatewayKey(name=name, proof=proof, created_at=time.time()))

    def add(keys: Keys) -> Keys:
        if any(other.name == name for other in keys):
            raise ConfigError(f"there is a key {name} already; rotate it, or choose another name")
        return (*keys, key)

    change_keys(path, add)
    return secret


def revoke_key(path: Path, name: str) -> None:
    """Let a key in no more; its entry stays, so that its name is not given away again."""
    now = time.time()
    _change_one(path, name, lambda key: msgspec.structs.replace(key, revoked_at=now, previous=None))


def rotate_key(path: Path, name: str, grace_seconds: float) -> str:
    """Give a key a new secret; the old one still works for a while."""
    secret, proof = new_secret()
    until = time.time() + grace_seconds

    def rotate(key: GatewayKey) -> GatewayKey:
        if key.revoked_at is not None:
            raise ConfigError(f"the key {name} is revoked")
        previous = msgspec.structs.replace(key.proof, until=until) if grace_seconds > 0 else None
        return msgspec.structs.replace(key, proof=proof, previous=previous)

    _change_one(path, name, rotate)
    return secret


def describe_key(key: GatewayKey) -> JSONObject:
    """A key as it may be shown: everything but the hashes."""
    shown: JSONObject = msgspec.to_builtins(key)
    del shown["proof"]
    previous = shown.pop("previous", None)
    return shown | {
        "id": key.proof.id,
        "tenant": key.tenant,
        "state": "active" if key.revoked_at is None else "revoked",
        "old_secret_until": None if previous is None else previous["until"],
    }


def _change_one(path: Path, name: str, change: Callable[[GatewayKey], GatewayKey]) -> None:
    def apply(keys: Keys) -> Keys:
        if all(key.name != name for key in keys):
            raise ConfigError(f"there is no key {name}")
        return tuple(change(key) if key.name == name else key for key in keys)

    change_keys(path, apply)
