"""A conversation's prefix comes in; the very bytes that were put into it before go out.

A provider caches prompts by their beginning. So what was once put into a conversation is put in
again unchanged, until it may not be (something was deleted) or costs nothing (the cache is cold).
"""

import time
from collections.abc import Callable, Mapping, Sequence

import orjson

from proxy.memory.inject import Block
from proxy.memory.principal import Principal
from proxy.state.memory import Store


class Pinned:
    """Blocks by conversation, tails by message; their loss costs a cache, never correctness."""

    def __init__(
        self, store: Store, refresh_seconds: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._refresh = refresh_seconds
        self._clock = clock

    async def block(self, whose: Principal, root: str, wipes: int) -> Block | None:
        """What stands in this conversation; None when it is new, stale or cold."""
        raw = await self._store.get(whose.tenant, _key("block", whose, root))
        if raw is None:
            return None
        text, dropped, then, at = orjson.loads(raw)
        if then != wipes or abs(self._clock() - at) > self._refresh:  # clocks may have been set
            return None
        await self._put_block(whose, root, Block(text, tuple(dropped)), wipes)
        return Block(text, tuple(dropped))

    async def keep_block(self, whose: Principal, root: str, block: Block, wipes: int) -> None:
        """From now on this is what stands there."""
        await self._put_block(whose, root, block, wipes)

    async def tails(self, whose: Principal, links: Mapping[int, str]) -> dict[int, str]:
        """What was put at the end of messages, by position; empty text: nothing, for good."""
        keys = {_key("tail", whose, link): position for position, link in links.items()}
        found = await self._store.get_many(whose.tenant, list(keys))
        return {keys[key]: value.decode() for key, value in found.items()}

    async def keep_tail(self, whose: Principal, link: str, text: str) -> str:
        """Decide about a message, once: the first decision stays."""
        key = _key("tail", whose, link)
        kept = await self._store.put_if_absent(whose.tenant, key, text.encode())
        return kept.decode()

    async def _put_block(self, whose: Principal, root: str, block: Block, wipes: int) -> None:
        value = orjson.dumps([block.text, block.dropped, wipes, self._clock()])
        await self._store.put(whose.tenant, _key("block", whose, root), value)


def root_of(links: Sequence[str]) -> str:
    """What all requests of one conversation share: its first message that is not the system's."""
    return next((link for link in links if link), "")


def _key(kind: str, whose: Principal, link: str) -> str:
    return f"memory:{kind}:{len(whose.user)}:{whose.user}:{whose.scope}:{link}"
