"""A transaction comes in; changes to one person's rows are made, each with its event."""

import time
from typing import Any

from sqlalchemy import Table, and_, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from proxy.memory.change import (
    Change,
    Delete,
    Hold,
    Memory,
    Origin,
    Outcome,
    Person,
    Reject,
    Rename,
    Snapshot,
    Store,
)
from proxy.memory.principal import Principal
from proxy.memory.retention import is_fresh, shorter
from proxy.memory.schema import WHOSE, events, memories, people

LARGEST_NAMED = 3


class Desk:
    """One person's rows inside one transaction; older ones than `days` are as good as gone."""

    def __init__(
        self, connection: AsyncConnection, whose: Principal, days: float | None = None
    ) -> None:
        self._connection = connection
        self._whose = {name: getattr(whose, name) for name in WHOSE}
        self._days = days

    def theirs(self, table: Table) -> Any:
        """The condition that every statement has."""
        return and_(*(table.c[name] == value for name, value in self._whose.items()))

    async def snapshot(self) -> Snapshot:
        """All of it, sorted by key."""
        person = await self.person()
        days = shorter(self._days, person.retention_days)
        rows = await self._connection.execute(
            select(
                memories.c.key,
                memories.c.value,
                memories.c.tokens,
                memories.c.rev,
                memories.c.created_at,
                memories.c.updated_at,
            )
            .where(self.theirs(memories), is_fresh(memories.c.updated_at, days, time.time()))
            .order_by(memories.c.key)
        )
        found = sorted((Memory(*row) for row in rows), key=lambda memory: memory.key)
        return Snapshot(person, found)

    async def person(self) -> Person:
        """Their choices; the usual ones when they made none."""
        columns = (
            people.c.enabled,
            people.c.writable,
            people.c.wipes,
            people.c.retention_days,
            people.c.confirm,
        )
        row = (await self._connection.execute(select(*columns).where(self.theirs(people)))).first()
        return Person() if row is None else Person(*row)

    async def apply(self, change: Change, origin: Origin, limit: int) -> Outcome:
        """Make one change."""
        match change:
            case Store():
                return await self._store(change, origin, limit)
            case Delete():
                return await self._delete(change, origin)
            case Rename():
                return await self._rename(change, origin)
            case Reject():
                return await self._reject(change, origin)
            case Hold():
                values = (None, change.value)
                number = await self.log(
                    change.key, "pending", origin, values=values, reason=change.reason
                )
                return Outcome(
                    "pending", change.key, change.value, reason=change.reason, event=number
                )

    async def find(self, key: str) -> Memory | None:
        """One memory."""
        snapshot = await self.snapshot()
        return next((memory for memory in snapshot.memories if memory.key == key), None)

    async def _store(self, wish: Store, origin: Origin, limit: int) -> Outcome:
        snapshot = await self.snapshot()
        old = next((memory for memory in snapshot.memories if memory.key == wish.key), None)
        if is_stale(old, wish.rev):
            return Outcome("stale", wish.key, rev=old.rev if old else 0)
        if old is not None and old.value == wish.value:
            return Outcome("unchanged", wish.key, wish.value, tokens=old.tokens, rev=old.rev)
        refused = check_budget(wish, snapshot, limit)
        if refused is not None:
            await self.log(wish.key, "reject", origin, reason=refused.reason)
            return refused
        now = time.time()
        rev = 1 if old is None else old.rev + 1
        fields: dict[str, object] = {
            "value": wish.value,
            "tokens": wish.tokens,
            "rev": rev,
            "updated_at": now,
            "request_id": origin.request_id,
        }
        if old is None:
            mine = and_(self.theirs(memories), memories.c.key == wish.key)
            await self._connection.execute(delete(memories).where(mine))  # too old to be kept
            row = {**self._whose, "key": wish.key, "created_at": now, **fields}
            await self._connection.execute(insert(memories).values(row))
        else:
            mine = and_(self.theirs(memories), memories.c.key == wish.key)
            await self._connection.execute(update(memories).where(mine).values(fields))
        old_value = old.value if old else None
        number = await self.log(wish.key, "set", origin, values=(old_value, wish.value))
        total = snapshot.tokens - (old.tokens if old else 0) + wish.tokens
        return Outcome(
            "update",
            wish.key,
            wish.value,
            old_value,
            wish.tokens,
            total,
            limit,
            event=number,
            rev=rev,
        )

    async def _delete(self, wish: Delete, origin: Origin) -> Outcome:
        old = await self.find(wish.key)
        if old is None:
            return Outcome("missing", wish.key)
        if is_stale(old, wish.rev):
            return Outcome("stale", wish.key, rev=old.rev)
        mine = and_(self.theirs(memories), memories.c.key == wish.key)
        await self._connection.execute(delete(memories).where(mine))
        await self.count(wipes=1)
        number = await self.log(wish.key, "delete", origin, values=(old.value, None))
        return Outcome("delete", wish.key, old_value=old.value, event=number)

    async def _rename(self, wish: Rename, origin: Origin) -> Outcome:
        old, taken = await self.find(wish.key), await self.find(wish.new_key)
        if old is None:
            return Outcome("missing", wish.key)
        if is_stale(old, wish.rev):
            return Outcome("stale", wish.key, rev=old.rev)
        if taken is not None:
            return Outcome("taken", wish.new_key)
        mine = and_(self.theirs(memories), memories.c.key == wish.key)
        fields = {"key": wish.new_key, "rev": old.rev + 1, "updated_at": time.time()}
        await self._connection.execute(update(memories).where(mine).values(fields))
        await self.count(wipes=1)
        number = await self.log(wish.new_key, "rename", origin, reason=wish.key)
        return Outcome(
            "update", wish.new_key, old.value, tokens=old.tokens, event=number, rev=old.rev + 1
        )

    async def _reject(self, wish: Reject, origin: Origin) -> Outcome:
        number = await self.log(wish.key, "reject", origin, reason=wish.reason)
        return Outcome("reject", wish.key, reason=wish.reason, event=number)

    async def log(
        self,
        key: str,
        op: str,
        origin: Origin,
        *,
        values: tuple[str | None, str | None] = (None, None),
        reason: str | None = None,
    ) -> int:
        """Write an event; its number counts this person's events alone."""
        await self.count(events=1)
        number = await self._connection.scalar(select(people.c.events).where(self.theirs(people)))
        row = {
            **self._whose,
            "number": number,
            "key": key,
            "op": origin.op or op,
            "old_value": values[0],
            "new_value": values[1],
            "reason": reason,
            "score": origin.score,
            "request_id": origin.request_id,
            "at": time.time(),
        }
        await self._connection.execute(insert(events).values(row))
        return int(number or 0)

    async def count(self, *, events: int = 0, wipes: int = 0) -> None:
        """Move the counters on; makes the person's own row when it is their first."""
        known = await self._connection.scalar(
            select(func.count()).select_from(people).where(self.theirs(people))
        )
        if not known:
            row = {**self._whose, "enabled": True, "writable": True, "wipes": 0, "events": 0}
            await self._connection.execute(insert(people).values(row))
        moved = {"events": people.c.events + events, "wipes": people.c.wipes + wipes}
        await self._connection.execute(update(people).where(self.theirs(people)).values(moved))


def is_stale(old: Memory | None, rev: int | None) -> bool:
    """Whether somebody else has changed it meanwhile."""
    return rev is not None and rev != (old.rev if old else 0)


def check_budget(wish: Store, snapshot: Snapshot, limit: int) -> Outcome | None:
    """LibreChat's two errors, counted against what the key itself will give back."""
    others = [memory for memory in snapshot.memories if memory.key != wish.key]
    base = sum(memory.tokens for memory in others)
    room = limit - base
    if wish.tokens <= room:
        return None
    largest = sorted(others, key=lambda memory: -memory.tokens)[:LARGEST_NAMED]
    suggest = {
        "max_value_tokens": max(0, room),
        "largest_keys": [memory.key for memory in largest],
    }
    if room <= 0:
        reason, over, total = "already_exceeded", base - limit, base
    else:
        reason, over, total = "would_exceed", wish.tokens - room, base + wish.tokens
    return Outcome(
        "error",
        wish.key,
        tokens=over,
        total=total,
        limit=limit,
        reason=reason,
        suggest=suggest,
    )
