"""Days come in; the conditions and statements that let old memories go come out."""

from collections.abc import Sequence

from sqlalchemy import (
    ColumnElement,
    Delete,
    Table,
    Update,
    and_,
    delete,
    exists,
    false,
    literal,
    or_,
    select,
    update,
)

from proxy.memory.schema import WHOSE, events, memories, people

DAY = 86_400.0


def shorter(one: float | None, other: float | None) -> float | None:
    """The shorter of two times, either of which may be for ever."""
    both = [days for days in (one, other) if days is not None]
    return min(both, default=None)


def is_fresh(column: ColumnElement[float], days: float | None, now: float) -> ColumnElement[bool]:
    """The condition of rows that are kept."""
    return literal(value=True) if days is None else column >= now - days * DAY


def sweeping(days: float | None, now: float) -> Sequence[Delete | Update]:
    """What has to be done in order: running conversations get fresh blocks, then rows go."""
    theirs = and_(*(memories.c[name] == people.c[name] for name in WHOSE))
    old = _is_old(memories, memories.c.updated_at, days, now)
    touched = exists(select(literal(1)).select_from(memories).where(theirs, old))
    return (
        update(people).where(touched).values(wipes=people.c.wipes + 1),
        delete(memories).where(old),
        delete(events).where(_is_old(events, events.c.at, days, now)),
    )


def _is_old(
    table: Table, at: ColumnElement[float], days: float | None, now: float
) -> ColumnElement[bool]:
    """Older than the operator keeps anything, or than this person wants it kept."""
    chosen = people.alias()
    own = and_(
        *(chosen.c[name] == table.c[name] for name in WHOSE),
        chosen.c.retention_days.is_not(None),
        at < now - chosen.c.retention_days * DAY,
    )
    wanted = exists(select(literal(1)).select_from(chosen).where(own))
    return or_(false() if days is None else at < now - days * DAY, wanted)
