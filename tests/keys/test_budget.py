"""Money per UTC day and month."""

from datetime import UTC, datetime

from proxy.keys.budget import Budget, Spent, month_of, month_start


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def day(text: str) -> int:
    return int(at(text) // 86_400)


def test_a_days_budget_ends_with_the_day() -> None:
    """Reached means spent; midnight UTC brings a new one."""
    budget = Budget()
    budget.add(day("2026-11-30"), 99)
    assert budget.exceeded(at("2026-11-30T12:00"), 100, None) is None
    budget.add(day("2026-11-30"), 1)
    assert budget.exceeded(at("2026-11-30T12:00"), 100, None) == Spent("day", 12 * 3600)
    assert budget.exceeded(at("2026-12-01T00:00"), 100, None) is None


def test_a_months_budget_ends_with_the_month() -> None:
    """December is followed by January."""
    budget = Budget()
    budget.add(day("2026-12-01"), 60)
    budget.add(day("2026-12-31"), 40)
    assert budget.exceeded(at("2026-12-31T23:59"), None, 100) == Spent("month", 60)
    assert budget.exceeded(at("2027-01-01T00:00"), None, 100) is None


def test_a_clock_that_jumps_ahead_and_back() -> None:
    """The day's sum is found again; nothing is refilled by a wrong clock."""
    budget = Budget()
    budget.add(day("2026-11-30"), 100)
    assert budget.exceeded(at("2027-03-01T12:00"), 100, 100) is None
    budget.add(day("2027-03-01"), 5)
    assert budget.exceeded(at("2026-11-30T12:00"), 100, None) is not None
    assert budget.exceeded(at("2026-11-30T12:00"), None, 100) is not None


def test_old_days_are_forgotten() -> None:
    """A gateway that runs for years does not grow."""
    budget = Budget()
    for number in range(10_000):
        budget.add(number, 1)
    assert budget.exceeded(9_999 * 86_400.0, 1, None) is not None
    assert budget.exceeded(0.0, 1, None) is None


def test_months() -> None:
    """Numbered from year 0."""
    assert month_of(day("2026-11-30")) == 2026 * 12 + 10
    assert month_start(at("2026-11-30T12:00")) == at("2026-11-01")
