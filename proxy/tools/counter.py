"""Texts come in; their numbers of tokens, counted by a process of its own, go out."""

import atexit
import os
import select
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from proxy.tools import vocabulary
from proxy.tools.vocabulary import NO_VOCABULARY, STAY, write_texts

ANSWER_SECONDS = 10.0
"""A busy machine may take seconds to load the vocabulary; what takes longer than this is stuck."""
BATCH_TEXTS = 64
BATCH_BYTES = 256 * 1024
"""What is asked at once: between batches others get their turn."""
TRIES = 2


class NoCounter(Exception):
    """No process could be started, or it does not answer."""


class Counter:
    """The process that counts: started with the first question, and again after it has ended.

    It ends by itself when it is idle. Safe to be asked by several threads.
    """

    def __init__(
        self, command: Sequence[str] | None = None, seconds: float = ANSWER_SECONDS
    ) -> None:
        # -P: the modules beside the script are not to be found as top-level ones.
        script = str(Path(vocabulary.__file__))
        self._command = list(command or (sys.executable, "-P", script))
        self._seconds = seconds
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._stuck = False
        atexit.register(self.close)

    def count(self, texts: Sequence[str]) -> list[int] | None:
        """Tokens of each text; None where the vocabulary cannot be read. Raises NoCounter."""
        counts: list[int] = []
        for batch in _batches(texts):
            found = self._ask(batch)
            if found is None:
                return None
            counts.extend(found)
        return counts

    def keep(self) -> None:
        """From now on do not let it end when it is idle."""
        with self._lock:
            if STAY not in self._command:
                self._command.append(STAY)
                self._stop()

    def close(self) -> None:
        """End the process, if it runs."""
        with self._lock:
            self._stop()

    def _ask(self, batch: list[bytes]) -> list[int] | None:
        with self._lock:
            for _ in range(0 if self._stuck else TRIES):
                try:
                    return self._exchange(batch)
                except TimeoutError:
                    # Waiting that long once is enough.
                    self._stuck = True
                    self._stop()
                    break
                except (OSError, EOFError):
                    # It was idle for too long and has ended, or somebody has ended it.
                    self._stop()
        raise NoCounter

    def _exchange(self, batch: list[bytes]) -> list[int] | None:
        child = self._child or self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        until = time.monotonic() + self._seconds
        _write(child.stdin.fileno(), write_texts(batch), until)
        (count,) = struct.unpack("<I", _read(child.stdout.fileno(), 4, until))
        if count == NO_VOCABULARY:
            return None
        if count != len(batch):
            raise EOFError
        return list(struct.unpack(f"<{count}I", _read(child.stdout.fileno(), 4 * count, until)))

    def _start(self) -> "subprocess.Popen[bytes]":
        self._child = subprocess.Popen(  # noqa: S603  our own script, by our own interpreter
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,  # a Ctrl-C in the terminal is for the gateway, which ends it
        )
        if self._child.stdin is not None:
            os.set_blocking(self._child.stdin.fileno(), False)
        return self._child

    def _stop(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue


def _batches(texts: Sequence[str]) -> list[list[bytes]]:
    batches: list[list[bytes]] = [[]]
    size = 0
    for text in texts:
        raw = text.encode(errors="replace")
        if batches[-1] and (len(batches[-1]) >= BATCH_TEXTS or size + len(raw) > BATCH_BYTES):
            batches.append([])
            size = 0
        batches[-1].append(raw)
        size += len(raw)
    return [batch for batch in batches if batch]


def _write(descriptor: int, data: bytes, until: float) -> None:
    """All bytes into a pipe. Raises OSError, TimeoutError when it does not take them in time."""
    rest = memoryview(data)
    while rest:
        _wait(descriptor, select.POLLOUT, until)
        rest = rest[os.write(descriptor, rest) :]


def _wait(descriptor: int, event: int, until: float) -> None:
    # Not select: that knows no descriptors beyond 1,023, which a busy gateway has.
    poll = select.poll()
    poll.register(descriptor, event)
    if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
        raise TimeoutError


def _read(descriptor: int, size: int, until: float) -> bytes:
    """So many bytes of a pipe. Raises EOFError, or TimeoutError when they take too long."""
    pieces = b""
    while len(pieces) < size:
        _wait(descriptor, select.POLLIN, until)
        piece = os.read(descriptor, size - len(pieces))
        if not piece:
            raise EOFError
        pieces += piece
    return pieces
