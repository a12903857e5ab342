"""One moment by which an answer is due, shared by everything that works on it."""

import time

import msgspec


class Deadline(msgspec.Struct, frozen=True):
    """A moment of the monotonic clock."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """The moment that many seconds from now."""
        return cls(time.monotonic() + seconds)

    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - time.monotonic())

    def share(self, fraction: float) -> "Deadline":
        """An earlier moment that uses only this fraction of what is left."""
        return Deadline.after(self.remaining() * fraction)
