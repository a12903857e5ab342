"""The ledger on a database: lines are queued on the event loop and written by one thread."""

import asyncio
import contextlib
import functools
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from proxy.errors import Unavailable
from proxy.ledger.backend import Backend, Failure
from proxy.ledger.connect import check
from proxy.ledger.pump import Pump
from proxy.ledger.queue import Queue
from proxy.ledger.status import Options, Status
from proxy.ledger.store import Books, Health, UsageQuery
from proxy.ledger.usage import Row, TurnRow
from proxy.wire import JSONObject

T = TypeVar("T")

_SETTLE_SECONDS = 0.5

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Opened:
    """The database once it is open, and the loop that it belongs to."""

    loop: asyncio.AbstractEventLoop
    backend: Backend
    settle: Callable[[], Awaitable[None]]

    async def ask(self, question: Callable[[Books], Coroutine[Any, Any, T]], patience: float) -> T:
        """The answer, after `patience` seconds without the lines that could not be written."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self.settle()
        return await question(await self.backend.books())


class SqlLedger:
    """SQLite or PostgreSQL behind a bounded queue.

    The thread starts with the first line or question, so no start-up has to wait for a database.
    Lines recorded meanwhile are kept.
    """

    def __init__(self, url: str, options: Options) -> None:
        self._url = url
        self._options = options
        self._queue = Queue(options.queue_rows, self._wake)
        self._status = Status()
        self._thread: threading.Thread | None = None
        self._rouse: Callable[[], object] | None = None
        self._opened: Future[_Opened] = Future()

    def record(self, row: Row) -> None:
        """Keep a row; it is on disk within the flush interval."""
        self._queue.add_call(row)

    def record_turn(self, turn: TurnRow) -> None:
        """Keep the line of a whole turn."""
        self._queue.add_turn(turn)

    @property
    def health(self) -> Health:
        """How it goes."""
        status = self._status
        return Health(
            pending=len(self._queue) + status.writing,
            written=status.written,
            dropped=self._queue.dropped,
            failures=status.failures,
            degraded=status.degraded,
        )

    async def start(self) -> None:
        """Refuse a database that can never work; one that is away or locked is waited for."""
        try:
            await asyncio.to_thread(check, self._url)
        except Failure as error:
            _log.warning("ledger_degraded", reason=str(error))

    async def aclose(self) -> None:
        """Write what is pending, for a few seconds if the database is away."""
        self._status.deadline = time.monotonic() + self._options.close_seconds
        self._status.closing = True
        if self._thread is not None:
            self._wake()
            await asyncio.to_thread(self._thread.join, 2 * self._options.close_seconds)

    async def usage(self, query: UsageQuery) -> list[JSONObject]:
        """Totals of calls."""
        return await self._ask(lambda books: books.usage(query))

    async def savings(self, query: UsageQuery) -> list[JSONObject]:
        """Totals of turns."""
        return await self._ask(lambda books: books.savings(query))

    async def requests(
        self, tenant: str | None, limit: int = 50, before: float | None = None
    ) -> list[JSONObject]:
        """The newest turns."""
        return await self._ask(lambda books: books.requests(tenant, limit, before))

    async def timeline(self, request_id: str, tenant: str | None) -> JSONObject | None:
        """One turn with all its calls."""
        return await self._ask(lambda books: books.timeline(request_id, tenant))

    async def spent(self, since: float) -> Sequence[tuple[str, int, int]]:
        """Known cost per key and day."""
        return await self._ask(lambda books: books.spent(since))

    async def _ask(self, question: Callable[[Books], Coroutine[Any, Any, T]]) -> T:
        """Ask on the writer's loop, where the database lives, with all lines so far written.

        A database that takes no lines now, as on a full disk, answers from those that it has.
        """
        self._wake()
        try:
            async with asyncio.timeout(self._options.answer_seconds):
                opened = await asyncio.shield(asyncio.wrap_future(self._opened))
                asking = opened.ask(question, self._patience())
                answer = asyncio.run_coroutine_threadsafe(asking, opened.loop)
                return await asyncio.wrap_future(answer)
        except TimeoutError:
            reason = self._status.degraded or "it takes too long"
            raise Unavailable(f"The ledger does not answer: {reason}", retry_after=5) from None
        except Failure as error:
            raise Unavailable(f"The ledger does not answer: {error}", retry_after=5) from None

    def _patience(self) -> float:
        """Seconds for writing what waits: little where writing is known to fail."""
        half = self._options.answer_seconds / 2
        return half if self._status.degraded is None else min(half, _SETTLE_SECONDS)

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="usher-ledger", daemon=True)
            self._thread.start()
        elif self._rouse is not None:
            with contextlib.suppress(RuntimeError):  # the thread ended this moment
                self._rouse()

    def _run(self) -> None:
        asyncio.run(self._pump())

    async def _pump(self) -> None:
        loop = asyncio.get_running_loop()
        pump = Pump(self._url, self._queue, self._options, self._status)
        self._rouse = functools.partial(loop.call_soon_threadsafe, pump.wake)
        try:
            await pump.run(
                lambda backend: self._opened.set_result(_Opened(loop, backend, pump.settle))
            )
        finally:
            self._rouse = None
            if not self._status.closing:
                self._status.failed("the writer stopped")
