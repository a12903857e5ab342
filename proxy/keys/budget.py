"""Costs in; whether a day's or a month's budget is used up, and until when, out."""

import functools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

DAY_SECONDS = 86_400

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KEPT = 64  # days and months; room for a clock that jumps


@dataclass(frozen=True, slots=True)
class Spent:
    """Which budget is used up, and the seconds until the next one begins."""

    period: str
    seconds: float


class Budget:
    """What a key has spent per UTC day and month, in nano-USD.

    The wall clock decides which day it is, so a clock that jumps ahead and back finds the
    same day's sum again. Costs are known when an answer ends: the last ones may go over.
    """

    __slots__ = ("_days", "_months")

    def __init__(self) -> None:
        self._days: dict[int, int] = {}
        self._months: dict[int, int] = {}

    def add(self, day: int, nano_usd: int) -> None:
        """Count a cost on the day (since 1970) that it happened."""
        _count(self._days, day, nano_usd)
        _count(self._months, month_of(day), nano_usd)

    def exceeded(self, now: float, per_day: int | None, per_month: int | None) -> Spent | None:
        """The budget that is used up, if one is."""
        today = int(now // DAY_SECONDS)
        if per_month is not None and self._months.get(month_of(today), 0) >= per_month:
            return Spent("month", until_next("month", now))
        if per_day is not None and self._days.get(today, 0) >= per_day:
            return Spent("day", until_next("day", now))
        return None


def _count(sums: dict[int, int], period: int, nano_usd: int) -> None:
    sums[period] = sums.get(period, 0) + nano_usd
    if len(sums) > _KEPT:
        del sums[min(sums)]


@functools.lru_cache(maxsize=_KEPT)
def month_of(day: int) -> int:
    """The month's number, counted from year 0, of a day since 1970."""
    date = _EPOCH + timedelta(days=day)
    return date.year * 12 + date.month - 1


def month_start(now: float) -> float:
    """When this month began, UTC."""
    date = datetime.fromtimestamp(now, UTC)
    return datetime(date.year, date.month, 1, tzinfo=UTC).timestamp()


def until_next(period: str, now: float) -> float:
    """The seconds until the next day or month begins, UTC."""
    today = int(now // DAY_SECONDS)
    return (_next_month(today) if period == "month" else today + 1) * DAY_SECONDS - now


def _next_month(day: int) -> int:
    year, month = divmod(month_of(day) + 1, 12)
    return (datetime(year, month + 1, 1, tzinfo=UTC) - _EPOCH).days
