"""A gateway key: what its holder may do, and the hash that proves it; never the secret itself."""

import hashlib
import secrets
import string
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

PREFIX = "sk-usher-"
"""Many clients check that a key starts with `sk-`."""

_ALPHABET = string.ascii_letters + string.digits
_ID_LETTERS = 8
_SECRET_LETTERS = 43  # 256 bits, so that a plain hash is enough


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Requests and tokens per minute, requests at once, and nano-USD per UTC day and month."""

    rpm: int | None = None
    tpm: int | None = None
    concurrent: int | None = None
    budget_day: int | None = None
    budget_month: int | None = None


NO_LIMITS = Limits()


class KeyPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Wishes that are fixed for the key: they win over what a request asks for."""

    defer: Literal["auto", "off", "all"] | None = None
    predict: Literal["on", "off"] | None = None
    memory: Literal["off", "read", "write", "full"] | None = None
    triage: Literal["off", "on", "shadow"] | None = None

    def wishes(self) -> dict[str, str]:
        """What is fixed, under the names that `x-usher-…` headers have."""
        fixed: dict[str, str] = msgspec.to_builtins(self)
        return fixed


NO_POLICY = KeyPolicy()


class Proof(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a secret is recognised: its public id and its hash, until a time."""

    id: str
    digest: str
    until: float | None = None

    def matches(self, secret: str, now: float) -> bool:
        """Compare without telling by the time it takes how much of it was right."""
        fits = secrets.compare_digest(self.digest, hash_secret(secret))
        return fits and (self.until is None or now < self.until)


class GatewayKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One entry of the key file.

    `name` is what the ledger shows; it survives a rotation. No `models` means all of them.
    `user` binds the key to one user id; else `trust_user` says whether ids that a request
    names are believed. `previous` is the secret before the rotation, for as long as it lasts.
    """

    name: str
    proof: Proof
    created_at: float
    tenant: str = "default"
    admin: bool = False
    models: tuple[str, ...] = ()
    upstream: str | None = None
    user: str | None = None
    trust_user: bool = False
    policy: KeyPolicy = NO_POLICY
    limits: Limits = NO_LIMITS
    previous: Proof | None = None
    revoked_at: float | None = None

    def allows(self, model: str) -> bool:
        """Whether the key may use a model."""
        return not self.models or any(fnmatchcase(model, glob) for glob in self.models)

    def speaks_for(self, named: str | None) -> str | None:
        """The user of a request that names one: the key's own, the named one if it is believed."""
        if self.user is not None:
            return self.user
        return named if self.trust_user else None


def new_secret() -> tuple[str, Proof]:
    """A fresh secret, to be shown once, and what recognises it."""
    public = _letters(_ID_LETTERS)
    secret = f"{PREFIX}{public}-{_letters(_SECRET_LETTERS)}"
    return secret, Proof(public, hash_secret(secret))


def read_id(secret: str) -> str | None:
    """The public id inside a secret, or None when it cannot be one of ours."""
    if not secret.startswith(PREFIX) or not secret.isascii():
        return None
    public, _, rest = secret.removeprefix(PREFIX).partition("-")
    return public if public and rest else None


def hash_secret(secret: str) -> str:
    """SHA-256: a random secret of 256 bits needs no slow hash."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _letters(count: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(count))
