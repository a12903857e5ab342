"""Whose memories and what to do with them come in; what became of it goes out.

Nothing can be asked without a Principal, so no answer can hold another's row, number or count.
"""

import asyncio
import hashlib
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Row, and_, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from proxy.errors import Unavailable
from proxy.memory.change import Change, Delete, Origin, Outcome, Person, Snapshot, Store
from proxy.memory.database import Database
from proxy.memory.desk import Desk
from proxy.memory.principal import Principal
from proxy.memory.retention import sweeping
from proxy.memory.schema import events, gates, memories, people
from proxy.tools.tokens import count_tokens
from proxy.wire import JSONObject

STUCK_SECONDS = 120.0
"""A run that began that long ago and never ended was killed: another may take its place."""
SAME_SECONDS = 900.0
"""Within that time the same message in the same conversation is a repeat, not a new request."""
EVERYTHING = "*"
"""The key that stands for all of them."""
SWEEP_SECONDS = 3_600.0
"""How often old memories are looked for; until then they are not shown any more."""
KEPT_SECONDS = 7 * 86_400.0
"""How long what the gate said can be asked for."""


class Bank:
    """Memories, their events and people's choices in a database."""

    def __init__(
        self, database: Database, token_limit: int, retention_days: float | None = None
    ) -> None:
        self._database = database
        self._limit = token_limit
        self._days = retention_days

    @property
    def token_limit(self) -> int:
        """Of all values of one person."""
        return self._limit

    async def start(self) -> None:
        """Open the database before the first turn has to; one that is away is tried again then.

        Raises ConfigError for one that can never work.
        """
        with suppress(Unavailable):
            await self.sweep()
            await self.read(Principal("", ""))  # nobody's: the first turn's statements are made now

    async def watch(self) -> None:
        """Let go, every hour, what is older than it may be."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            with suppress(Unavailable):
                await self.sweep()

    async def sweep(self) -> None:
        """Delete what is too old, whoever's it is; nothing of it is read."""
        async with self._database.writing() as connection:
            for statement in sweeping(self._days, time.time()):
                await connection.execute(statement)

    async def read(self, whose: Principal) -> Snapshot:
        """All memories."""
        async with self._database.reading() as connection:
            return await Desk(connection, whose, self._days).snapshot()

    async def change(
        self, whose: Principal, changes: Sequence[Change], origin: Origin, *, whole: bool = False
    ) -> list[Outcome]:
        """Make changes in order, in one transaction: each sees the ones before it.

        With `whole`, one error is enough and nothing is changed.
        """
        async with self._database.writing(whose) as connection:
            desk = Desk(connection, whose, self._days)
            outcomes = [await desk.apply(change, origin, self._limit) for change in changes]
            if whole and any(outcome.kind == "error" for outcome in outcomes):
                await connection.rollback()
            return outcomes

    async def forget(self, whose: Principal, origin: Origin) -> int:
        """Delete everything; what the log said is blotted out, that something happened stays."""
        async with self._database.writing(whose) as connection:
            desk = Desk(connection, whose, self._days)
            gone = len((await desk.snapshot()).memories)
            await connection.execute(delete(memories).where(desk.theirs(memories)))
            await connection.execute(delete(gates).where(desk.theirs(gates)))
            rows = await connection.execute(
                select(events.c.number, events.c.key).where(desk.theirs(events))
            )
            for number, key in rows.all():
                blank = {"key": _blot(key), "old_value": None, "new_value": None, "reason": None}
                mine = and_(desk.theirs(events), events.c.number == number)
                await connection.execute(update(events).where(mine).values(blank))
            await desk.count(wipes=1)
            await desk.log(EVERYTHING, "forget", origin)
            return gone

    async def events(
        self,
        whose: Principal,
        *,
        request_id: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[JSONObject]:
        """The newest events first."""
        wanted: list[ColumnElement[bool]] = []
        if request_id is not None:
            wanted.append(events.c.request_id == request_id)
        if before is not None:
            wanted.append(events.c.number < before)
        shown = [c for c in events.c if c.name not in {"tenant", "user", "scope"}]
        async with self._database.reading() as connection:
            desk = Desk(connection, whose, self._days)
            found = await connection.execute(
                select(*shown)
                .where(desk.theirs(events), *wanted)
                .order_by(events.c.number.desc())
                .limit(limit)
            )
            names = list(map(str, found.keys()))  # some are a kind of str of its own
            return [dict(zip(names, row, strict=True)) for row in found]

    async def undo(
        self, whose: Principal, number: int | None, origin: Origin | None = None
    ) -> Outcome:
        """Take back a change, the newest one by default, unless its key has changed since."""
        undoing = Origin((origin or Origin()).request_id, op="undo")
        async with self._database.writing(whose) as connection:
            desk = Desk(connection, whose, self._days)
            wanted: list[ColumnElement[bool]] = [events.c.op.in_(("set", "delete"))]
            if number is not None:
                wanted.append(events.c.number == number)
            row = (
                await connection.execute(
                    select(events)
                    .where(desk.theirs(events), *wanted)
                    .order_by(events.c.number.desc())
                    .limit(1)
                )
            ).first()
            if row is None or row.old_value is row.new_value is None:
                return Outcome("missing", "")
            now = await desk.find(row.key)
            if (now.value if now else None) != row.new_value:
                return Outcome("stale", row.key)
            change: Change = Delete(row.key)
            if row.old_value is not None:
                change = Store(row.key, row.old_value, count_tokens(row.old_value))
            return await desk.apply(change, undoing, self._limit)

    async def confirm(
        self, whose: Principal, number: int | None, origin: Origin, *, accept: bool = True
    ) -> Outcome:
        """Do, or drop, what waits for the user's word: the newest, or that of an event."""
        async with self._database.writing(whose) as connection:
            desk = Desk(connection, whose, self._days)
            waiting = await self._waiting(connection, desk, number)
            if waiting is None:
                return Outcome("missing", "")
            answer = Origin(origin.request_id, op="confirm" if accept else "dismiss")
            await desk.log(waiting.key, "", answer, reason=str(waiting.number))
            if not accept:
                return Outcome("unchanged", waiting.key)
            if waiting.key != EVERYTHING:
                value = str(waiting.new_value)
                change = Store(waiting.key, value, count_tokens(value))
                return await desk.apply(change, Origin(origin.request_id), self._limit)
        gone = await self.forget(whose, origin)
        return Outcome("delete", EVERYTHING, total=gone)

    async def waits(self, whose: Principal, key: str, seconds: float) -> int | None:
        """The event of a wish about that key that lately began to wait for the user's word."""
        async with self._database.reading() as connection:
            desk = Desk(connection, whose, self._days)
            found = await self._waiting(connection, desk, None)
        fresh = found is not None and found.key == key and abs(time.time() - found.at) < seconds
        return int(found.number) if found is not None and fresh else None

    async def _waiting(
        self, connection: AsyncConnection, desk: Desk, number: int | None
    ) -> Row[Any] | None:
        """An event that waits, unless it was answered."""
        answers = select(events.c.reason).where(
            desk.theirs(events), events.c.op.in_(("confirm", "dismiss"))
        )
        answered = {row.reason for row in await connection.execute(answers)}
        wanted = [desk.theirs(events), events.c.op == "pending"]
        if number is not None:
            wanted.append(events.c.number == number)
        newest = select(events).where(*wanted).order_by(events.c.number.desc())
        rows = await connection.execute(newest)
        return next((row for row in rows if str(row.number) not in answered), None)

    async def merge(self, old: Principal, new: Principal, origin: Origin) -> list[Outcome]:
        """Give one person everything of another, who was them under an earlier name.

        Of two values under one key the newer one stays; all or, if it is too much, nothing.
        """
        source = await self.read(old)
        async with self._database.writing(new) as connection:
            desk = Desk(connection, new, self._days)
            here = {memory.key: memory for memory in (await desk.snapshot()).memories}
            newer = [
                memory
                for memory in source.memories
                if memory.key not in here or memory.updated_at > here[memory.key].updated_at
            ]
            merging = Origin(origin.request_id, op="merge")
            outcomes = [
                await desk.apply(Store(m.key, m.value, m.tokens), merging, self._limit)
                for m in newer
            ]
            if any(outcome.kind == "error" for outcome in outcomes):
                await connection.rollback()
                return outcomes
        await self.forget(old, origin)
        return outcomes

    async def choose(self, whose: Principal, fields: Mapping[str, object]) -> Person:
        """Write down what somebody chose, by the names of a Person; what is not named stays."""
        async with self._database.writing(whose) as connection:
            desk = Desk(connection, whose, self._days)
            await desk.count(wipes=1)
            if fields:
                await connection.execute(
                    update(people).where(desk.theirs(people)).values(dict(fields))
                )
            return await desk.person()

    async def claim(self, whose: Principal, chain: str, request_id: str) -> bool:
        """Begin the run for a message; False when it was made before, by whichever worker."""
        now = time.time()
        async with self._database.writing(whose) as connection:
            desk = Desk(connection, whose, self._days)
            mine = and_(desk.theirs(gates), gates.c.chain == chain)
            row = (await connection.execute(select(gates).where(mine))).first()
            patience = (
                STUCK_SECONDS if row is not None and row.status == "running" else SAME_SECONDS
            )
            if row is not None and abs(now - row.at) < patience:  # clocks may have been set
                return False
            old = and_(desk.theirs(gates), gates.c.at < now - KEPT_SECONDS)
            await connection.execute(delete(gates).where(old))
            await connection.execute(delete(gates).where(mine))
            row_now = {"chain": chain, "status": "running", "request_id": request_id, "at": now}
            whole = {"tenant": whose.tenant, "user": whose.user, "scope": whose.scope, **row_now}
            await connection.execute(insert(gates).values(whole))
            return True

    async def settle(self, whose: Principal, chain: str, fields: JSONObject) -> None:
        """Write down how a run ended: `status`; `score`, `hint` and `detail` if known."""
        values: dict[str, Any] = {**fields, "at": time.time()}
        values["detail"] = orjson.dumps(fields.get("detail") or {}).decode()
        async with self._database.writing(whose) as connection:
            desk = Desk(connection, whose, self._days)
            mine = and_(desk.theirs(gates), gates.c.chain == chain)
            await connection.execute(update(gates).where(mine).values(values))

    async def explain(self, whose: Principal, request_id: str) -> JSONObject | None:
        """What the gate said about a request's message, and what was done."""
        async with self._database.reading() as connection:
            desk = Desk(connection, whose, self._days)
            mine = and_(desk.theirs(gates), gates.c.request_id == request_id)
            row = (await connection.execute(select(gates).where(mine))).mappings().first()
        if row is None:
            return None
        return {
            "status": row["status"],
            "score": row["score"],
            "hint": row["hint"],
            "at": row["at"],
            **orjson.loads(row["detail"] or "{}"),
        }

    async def aclose(self) -> None:
        """Close the database."""
        await self._database.aclose()


def _blot(key: str) -> str:
    """A key as it may stay in the log: recognisable to nobody who does not know it."""
    return key if key.startswith("#") else "#" + hashlib.sha256(key.encode()).hexdigest()[:16]
