"""Small values of a tenant go in under a key and come out until they expire: an LRU in memory."""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Protocol


class Store(Protocol):
    """A small shared store whose loss costs tokens, never correctness.

    Every key belongs to a tenant. Values are bytes, so that a Redis or Valkey store can follow.
    """

    async def get(self, tenant: str, key: str) -> bytes | None:
        """The value, or None when it was never put, expired or was evicted."""

    async def get_many(self, tenant: str, keys: Sequence[str]) -> dict[str, bytes]:
        """The values of those keys that are there, in one round trip."""

    async def put(self, tenant: str, key: str, value: bytes) -> None:
        """Keeps a value for the store's time to live."""

    async def put_if_absent(self, tenant: str, key: str, value: bytes) -> bytes:
        """Keeps a value unless there is one; returns the one that is there now."""


class MemoryStore:
    """The Store of one process: least recently used values leave when it is full.

    `max_bytes` counts keys and values; `ttl_seconds` starts at the last put.
    """

    def __init__(
        self,
        max_bytes: int,
        ttl_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_bytes = max_bytes
        self._ttl = ttl_seconds
        self._clock = clock
        self._entries: OrderedDict[tuple[str, str], tuple[float, bytes]] = OrderedDict()
        self.bytes = 0

    async def get(self, tenant: str, key: str) -> bytes | None:
        """The value, or None when it was never put, expired or was evicted."""
        entry = self._entries.get((tenant, key))
        if entry is None:
            return None
        if entry[0] <= self._clock():
            self._remove((tenant, key))
            return None
        self._entries.move_to_end((tenant, key))
        return entry[1]

    async def get_many(self, tenant: str, keys: Sequence[str]) -> dict[str, bytes]:
        """The values of those keys that are there."""
        found = {key: await self.get(tenant, key) for key in keys} if self._entries else {}
        return {key: value for key, value in found.items() if value is not None}

    async def put(self, tenant: str, key: str, value: bytes) -> None:
        """Keeps a value for the store's time to live."""
        place = (tenant, key)
        self._remove(place)
        self._entries[place] = (self._clock() + self._ttl, value)
        self.bytes += _size(place, value)
        while self.bytes > self._max_bytes:
            self._remove(next(iter(self._entries)))

    async def put_if_absent(self, tenant: str, key: str, value: bytes) -> bytes:
        """Keeps a value unless there is one; returns the one that is there now."""
        present = await self.get(tenant, key)
        if present is not None:
            return present
        await self.put(tenant, key, value)
        return value

    def clear(self) -> None:
        """Forgets everything."""
        self._entries.clear()
        self.bytes = 0

    def _remove(self, place: tuple[str, str]) -> None:
        entry = self._entries.pop(place, None)
        if entry is not None:
            self.bytes -= _size(place, entry[1])


def _size(place: tuple[str, str], value: bytes) -> int:
    return len(place[0]) + len(place[1]) + len(value) + 200
