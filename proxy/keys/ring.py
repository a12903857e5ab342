"""A secret in, the gateway key it belongs to out; follows the key file while the gateway runs."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from structlog.typing import FilteringBoundLogger

from proxy.errors import ConfigError
from proxy.keys.key import NO_LIMITS, GatewayKey, Proof, read_id
from proxy.keys.keyfile import Keys, read_keys
from proxy.observe.log import silent
from proxy.observe.metrics import ReloadOutcome

_NOBODY = Proof("", "0" * 64)
"""Compared with when the id is unknown, so that an unknown id takes as long as a wrong secret."""

Check = Callable[[Keys], None]


class KeyRing:
    """The keys in force.

    Once there was a key the ring never opens again by itself: a file that is gone or broken
    leaves the keys as they were, and where there were none it is `shut`, since nobody can be told
    from anybody. Keys whose limits cannot hold are known and let nobody in. A running answer
    outlives its key; the next request does not.
    """

    def __init__(
        self,
        path: Path,
        *,
        check: Check = lambda keys: None,  # noqa: ARG005 - accepts all
        wall: Callable[[], float] = time.time,
        log: FilteringBoundLogger | None = None,
        count: Callable[[ReloadOutcome], None] | None = None,
    ) -> None:
        self._path = path
        self._check = check
        self._wall = wall
        self._log = log or silent()
        self._count = count or (lambda _: None)
        self._shut = self._limitless = False
        self._stamp: tuple[int, int, int] | None = None
        self._keys: Keys = ()
        self._by_id: dict[str, tuple[Proof, GatewayKey]] = {}

    @property
    def open(self) -> bool:
        """Whether nobody needs a key, because none was ever made."""
        return not self._keys and not self._shut

    @property
    def shut(self) -> bool:
        """Whether nobody can be let in: there is a key file now, and it cannot be read."""
        return self._shut

    @property
    def unenforced(self) -> bool:
        """Whether requests are refused because the file's keys cannot be enforced."""
        return self._shut or self._limitless

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def keys(self) -> Keys:
        """All keys, revoked ones too."""
        return self._keys

    def load(self) -> None:
        """Read the file. Raises ConfigError for one that is broken or whose limits cannot hold."""
        stamp = self._read_stamp()
        keys = self._read()
        self._check(keys)
        self._adopt(keys)
        self._stamp = stamp

    def find(self, secret: str) -> GatewayKey | None:
        """Whose secret this is; None when it is nobody's, or revoked."""
        proof, key = self._by_id.get(read_id(secret) or "", (_NOBODY, None))
        return key if proof.matches(secret, self._wall()) else None

    def holds(self, key: GatewayKey) -> bool:
        """Whether the key's limits can be kept by the processes that serve."""
        return not self._limitless or key.limits == NO_LIMITS

    def refresh(self) -> bool:
        """Read the file again if it changed; what is broken is reported and the old keys stay.

        Limits that cannot hold are reported too, and the other keys of the file are in force.
        """
        stamp = self._read_stamp()
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            keys = self._read()
        except ConfigError as error:
            self._shut = not self._keys
            self._fail("keys_not_reloaded", error)
            return False
        try:
            self._check(keys)
        except ConfigError as error:
            self._adopt(keys, limitless=True)
            self._fail("limits_not_enforced", error)
            return True
        self._adopt(keys)
        self._count("ok")
        self._log.info("keys_reloaded", keys=len(self._keys))
        return True

    async def watch(self, seconds: float) -> None:
        """Follow the file; runs until it is cancelled."""
        while True:
            await asyncio.sleep(seconds)
            await asyncio.to_thread(self.refresh)

    def _read(self) -> Keys:
        keys = read_keys(self._path)
        if not keys and not self.open:
            raise ConfigError(f"keys.file: {self._path} holds no keys any more")
        return keys

    def _adopt(self, keys: Keys, *, limitless: bool = False) -> None:
        self._limitless = self._limitless or limitless  # before the keys: a request may ask now
        self._by_id = {proof.id: (proof, key) for key in keys for proof in _proofs(key)}
        self._keys = keys
        self._limitless, self._shut = limitless, False

    def _fail(self, event: str, error: ConfigError) -> None:
        self._count("failed")
        self._log.error(event, reason=error.message)

    def _read_stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def _proofs(key: GatewayKey) -> tuple[Proof, ...]:
    if key.revoked_at is not None:
        return ()
    return (key.proof,) if key.previous is None else (key.proof, key.previous)
