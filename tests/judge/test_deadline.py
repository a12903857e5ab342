"""Time that is shared."""

import time

from proxy.judge.deadline import Deadline


def test_what_is_left_is_never_negative() -> None:
    """A moment that has passed leaves nothing."""
    assert Deadline.after(-5).remaining() == 0.0


def test_a_share_ends_earlier() -> None:
    """Sixty percent of ten seconds are six."""
    whole = Deadline.after(10)
    assert 5.5 < whole.share(0.6).remaining() <= 6.0
    assert whole.at > time.monotonic()
