"""Long work in the background leaves room for requests."""

import pytest

from proxy.tools.pace import FREE_SECONDS, Pace


def test_short_work_is_not_slowed_down() -> None:
    """The vectors of a usual catalogue are there as soon as can be."""
    waited: list[float] = []
    Pace(0.25, waited.append).spend(FREE_SECONDS)
    assert waited == []


def test_long_work_keeps_to_its_share() -> None:
    """A quarter of the time works, three quarters wait."""
    waited: list[float] = []
    pace = Pace(0.25, waited.append)
    pace.spend(FREE_SECONDS)
    pace.spend(0.5)
    assert waited == [pytest.approx(1.5)]
    assert pace.seconds == FREE_SECONDS + 0.5


def test_a_whole_core_never_waits() -> None:
    """For measurements."""
    waited: list[float] = []
    Pace(1.0, waited.append).spend(100.0)
    assert waited == []
