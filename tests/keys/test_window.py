"""A sliding minute: never more than the limit in any sixty seconds."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.keys.window import Window


def test_what_is_older_than_a_minute_is_forgotten() -> None:
    """Not a moment too early."""
    window = Window()
    window.add(1000.9, 3)
    window.move(1060.8)
    assert window.total == 3
    window.move(1060.9)
    assert window.total == 0


def test_how_long_until_there_is_room() -> None:
    """The oldest leave first."""
    window = Window()
    window.add(1000.0, 2)
    window.add(1030.0, 2)
    assert window.seconds_until(1030.0, 4) == 0
    assert window.seconds_until(1030.0, 3) == 30
    assert window.seconds_until(1030.0, 1) == 60
    assert window.seconds_until_empty(1030.0) == 60
    assert Window().seconds_until_empty(5.0) == 0


def test_amounts_of_one_second_leave_together() -> None:
    """A minute after the last of them, so little is kept and nobody waits longer than a minute."""
    window = Window()
    for tenth in range(10):
        window.add(1000 + tenth / 10, 1)
    assert window.seconds_until(1000.9, 9) == 60
    window.move(1060.5)
    assert window.total == 10
    window.move(1060.9)
    assert window.total == 0


def test_a_clock_that_steps_back() -> None:
    """Nothing is forgotten, nothing is counted twice."""
    window = Window()
    window.add(1000.0, 1)
    window.add(900.0, 1)
    assert window.total == 2
    window.move(1061.0)
    assert window.total == 0


@given(st.lists(st.tuples(st.floats(0, 20), st.integers(1, 5)), max_size=60), st.integers(1, 30))
def test_never_more_than_the_limit_in_any_minute(
    steps: list[tuple[float, int]], limit: int
) -> None:
    """Against a list of everything that was let in."""
    window, now, let_in = Window(), 5000.0, list[tuple[float, int]]()
    for pause, amount in steps:
        now += pause
        window.move(now)
        if window.total + amount <= limit:
            window.add(now, amount)
            let_in.append((now, amount))
        assert sum(n for at, n in let_in if at > now - 60) <= limit
