"""The writer's side: batches out of the queue, into the database, however long that takes."""

import asyncio
import secrets
import time
from collections.abc import Callable

import structlog

from proxy.errors import ConfigError
from proxy.ledger.backend import Backend, Failure, Lines, Rejected
from proxy.ledger.connect import open_backend
from proxy.ledger.encode import Numbered
from proxy.ledger.queue import Batch, Queue
from proxy.ledger.retention import delete_old
from proxy.ledger.status import Options, Status

_log = structlog.get_logger(__name__)

_PRUNE_SECONDS = 3600.0
_LONGEST_PAUSE = 5.0
_DAY_SECONDS = 86_400.0
_COLLECTING = 0.8
"""The share of the flush interval in which a batch is collected; the rest is for writing it."""


class Pump:
    """Runs on the writer's own event loop until it is closed and the queue is empty."""

    def __init__(self, url: str, queue: Queue, options: Options, status: Status) -> None:
        self._url = url
        self._queue = queue
        self._options = options
        self._status = status
        self._awake = asyncio.Event()
        self._writer = secrets.randbits(62)
        self._prune_at = 0.0
        self._waiting: list[asyncio.Event] = []

    def wake(self) -> None:
        """There are lines, or it is time to close; called on the pump's loop."""
        self._awake.set()

    async def settle(self) -> None:
        """Return when every line that was recorded before is written."""
        done = asyncio.Event()
        self._waiting.append(done)
        self._awake.set()
        await done.wait()

    async def run(self, opened: Callable[[Backend], None]) -> None:
        """Open the database, say so, and write until closed."""
        backend = await self._open()
        if backend is None:
            return
        try:
            opened(backend)
            await self._write_until_closed(backend)
        finally:
            await backend.aclose()

    async def _open(self) -> Backend | None:
        """The database, as soon as it lets itself be opened; None when closed before that."""
        pause = self._options.flush_seconds
        while True:
            try:
                backend = await open_backend(self._url)
            except (ConfigError, Failure) as error:
                self._fail(error)
                if self._out_of_time():
                    self._lose(len(self._queue))
                    return None
                await self._wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                self._recover()
                return backend

    async def _write_until_closed(self, backend: Backend) -> None:
        while True:
            waiting, self._waiting = self._waiting, []
            batch = self._queue.take()
            if len(batch) > 0:
                await self._write(backend, batch)
            if batch.full:
                self._waiting += waiting
                continue
            for done in waiting:
                done.set()
            if self._status.closing and len(self._queue) == 0:
                return
            await self._prune(backend)
            await self._doze()

    async def _write(self, backend: Backend, batch: Batch) -> None:
        priced = list(map(self._options.price, batch.calls))
        calls = Numbered(priced, self._writer, batch.first_call)
        turns = Numbered(batch.turns, self._writer, batch.first_turn)
        self._status.writing = len(batch)
        try:
            await self._insist(backend, calls, turns)
        except Rejected:
            for call in calls:
                await self._write_alone(backend, [call], [])
            for turn in turns:
                await self._write_alone(backend, [], [turn])
        self._status.writing = 0

    async def _write_alone(self, backend: Backend, calls: Lines, turns: Lines) -> None:
        """One line of a batch that was rejected; the one that is wrong is lost, not the others."""
        try:
            await self._insist(backend, calls, turns)
        except Rejected as error:
            self._fail(error)
            self._lose(1)

    async def _insist(self, backend: Backend, calls: Lines, turns: Lines) -> None:
        """Try until it is written, or until it is time to give up."""
        pause = self._options.flush_seconds
        while True:
            try:
                await backend.write(calls, turns)
            except Rejected:
                raise
            except Failure as error:
                self._fail(error)
                if self._out_of_time():
                    self._lose(len(calls) + len(turns))
                    return
                await self._wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                self._status.written += len(calls) + len(turns)
                self._recover()
                return

    async def _prune(self, backend: Backend) -> None:
        """Delete what is too old, once an hour; what fails is tried again an hour later."""
        if time.monotonic() < self._prune_at or self._status.closing:
            return
        self._prune_at = time.monotonic() + _PRUNE_SECONDS
        before = time.time() - self._options.keep_days * _DAY_SECONDS
        try:
            await backend.delete(delete_old(before, self._options.keep_rows))
        except Failure as error:
            self._fail(error)

    async def _doze(self) -> None:
        """Sleep until there is a line, then until a batch is worth writing."""
        self._queue.asleep = True
        if len(self._queue) == 0 and not self._status.closing:
            await self._wait(_PRUNE_SECONDS)
        self._queue.asleep = False
        if not self._status.closing and not self._waiting:
            await self._wait(_COLLECTING * self._options.flush_seconds)

    async def _wait(self, seconds: float) -> None:
        """Sleep, or less when woken."""
        try:
            async with asyncio.timeout(seconds):
                await self._awake.wait()
        except TimeoutError:
            pass
        self._awake.clear()

    def _fail(self, error: Exception) -> None:
        reason = str(error)
        if self._status.failed(reason):
            _log.warning("ledger_degraded", reason=reason)

    def _recover(self) -> None:
        if self._status.recovered():
            _log.info("ledger_recovered", written=self._status.written)

    def _out_of_time(self) -> bool:
        return self._status.closing and time.monotonic() >= self._status.deadline

    def _lose(self, lines: int) -> None:
        self._queue.dropped += lines
        _log.error("ledger_lines_lost", lines=lines)
