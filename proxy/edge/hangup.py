"""A SIGHUP comes in; whether it asks for a reload or means that the terminal is gone goes out.

The same signal means both: an operator's `kill -HUP`, and a closed window, after which nobody could
stop a gateway that only reloads.
"""

import os
import signal

SIGHUP: int | None = getattr(signal, "SIGHUP", None)
"""None where there is no such signal."""


class Terminal:
    """The terminal that a process was started in; one under `nohup` counts as none."""

    def __init__(self) -> None:
        ignored = SIGHUP is not None and signal.getsignal(SIGHUP) is signal.SIG_IGN
        self._had_one = not ignored and _reachable()

    @property
    def gone(self) -> bool:
        """Whether there was one, and it has been closed."""
        return self._had_one and not _reachable()


def _reachable() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
