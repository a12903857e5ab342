"""Searches that ended in a call come in; one JSON line for each is added to an operator's file."""

import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import orjson

PRIVATE = 0o600


class Capture:
    """Adds lines of names and queries to a file that only its owner reads.

    A failure is told once, to `warn`: nothing that is captured is worth a turn.
    """

    def __init__(
        self, path: Path, warn: Callable[[str], None], clock: Callable[[], float] = time.time
    ) -> None:
        self._path = path
        self._warn = warn
        self._clock = clock
        self._failed = False

    def write(self, query: str, tool: str, others: Sequence[str]) -> None:
        """Adds a line; blocks, so call it beside the event loop."""
        at = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="seconds")
        line = {"query": query, "tool": tool, "others": others, "at": at}
        try:
            self._append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        except (OSError, orjson.JSONEncodeError) as error:
            if not self._failed:
                self._failed = True
                self._warn(getattr(error, "strerror", None) or type(error).__name__)

    def _append(self, line: bytes) -> None:
        """One write per line, so that the lines of several processes never mix."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        file = os.open(self._path, flags, PRIVATE)
        try:
            os.fchmod(file, PRIVATE)
            os.write(file, line)
        finally:
            os.close(file)
