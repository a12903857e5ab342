"""A request's bytes go out on one connection; its answer, read by httptools, comes back."""

import asyncio
import select
from collections.abc import AsyncIterator, Callable
from typing import cast

import httptools

from proxy.errors import StreamTruncated, UpstreamError, UpstreamTimeout
from proxy.upstream.h1_answer import Answer
from proxy.wire import Headers

HEAD_BYTES = 64 * 1024
_BODILESS = frozenset({204, 304})

Released = Callable[["Connection"], None]


class HungUp(Exception):
    """The connection ended before a head of an answer came."""


class Connection(asyncio.Protocol):
    """One kept-alive connection: one request at a time.

    `released` is called when an answer is whole and another request may follow. One timer serves
    all requests of a connection: it looks now and then whether the upstream has been quiet.
    """

    def __init__(self, released: Released) -> None:
        self._released = released
        self._loop = asyncio.get_running_loop()
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._poll: select.poll | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._head: asyncio.Future[Answer] | None = None
        self._answer: Answer | None = None
        self._drained: asyncio.Future[None] | None = None
        self._writable = True
        self._sent = False
        self._bodiless = False
        self._framed = False
        self._in_head = False
        self._paused = False
        self._head_bytes = 0
        self._headers: Headers = []
        self._pieces: list[bytes] = []
        self._idle_seconds = 0.0
        self._heard_at = 0.0
        self._unsent = 0
        self.used = False
        self.idle_since = 0.0

    # What the pool and the transport ask for

    @property
    def closed(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._transport is None or self._transport.is_closing()

    def has_news(self) -> bool:
        """Whether an idle connection can be read: only its end can be there, or garbage.

        The event loop may not have come round to it yet.
        """
        if self._poll is None:
            if self._transport is None or not hasattr(select, "poll"):
                return False
            self._poll = select.poll()
            sock = self._transport.get_extra_info("socket")
            self._poll.register(sock.fileno(), select.POLLIN)
        return bool(self._poll.poll(0))

    async def ask(
        self, head: bytes, body: bytes | AsyncIterator[bytes] | None, idle_seconds: float
    ) -> Answer:
        """Send a request and return with the head of its answer.

        Raises HungUp, UpstreamTimeout, UpstreamError, or what the body's iterator raises.
        """
        self.used = True
        self._bodiless = head.startswith(b"HEAD ")
        self._sent = False
        if idle_seconds != self._idle_seconds and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._idle_seconds = idle_seconds
        answer: asyncio.Future[Answer] = self._loop.create_future()
        self._head = answer
        self._listen()
        try:
            if body is None or isinstance(body, bytes):
                self._write(head, body)
                self._sent = True
            else:
                await self._upload(answer, head, body)
            return await answer
        except BaseException:
            # With the answer the connection may already be another request's.
            if self._head is answer:
                self._head = None
                self.abort()
            elif not answer.cancelled() and answer.exception() is None:
                await answer.result().aclose()
            raise

    def pause(self) -> None:
        """The reader is slow."""
        if self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """The reader has caught up."""
        if self._transport is not None:
            self._paused = False
            self._listen()
            self._transport.resume_reading()

    def abort(self) -> None:
        """Disconnect at once."""
        if self._transport is not None:
            self._transport.abort()

    # The sending side

    def _write(self, head: bytes, body: bytes | None) -> None:
        if self._transport is None:
            raise HungUp
        if body:
            self._transport.writelines((head, body))
        else:
            self._transport.write(head)

    async def _upload(
        self, answer: "asyncio.Future[Answer]", head: bytes, body: AsyncIterator[bytes]
    ) -> None:
        """Send a body as it comes, unless the answer is there before its end."""
        self._write(head, None)
        chunked = head.endswith(b"transfer-encoding: chunked\r\n\r\n")
        quiet, self._idle_seconds = self._idle_seconds, 0.0  # waiting for the caller is free
        async for piece in body:
            if answer.done() or self._transport is None:
                break
            if piece:
                self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            if not self._writable:
                await self._drain(answer, quiet)
        else:
            if chunked and self._transport is not None:
                self._transport.write(b"0\r\n\r\n")
            self._sent = True
        self._idle_seconds = quiet
        self._listen()

    async def _drain(self, answer: "asyncio.Future[Answer]", quiet: float) -> None:
        """Wait until the upstream has taken what was sent, or has answered."""
        self._drained = self._loop.create_future()
        self._idle_seconds = quiet
        self._listen()
        try:
            await asyncio.wait((answer, self._drained), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._drained = None
            self._idle_seconds = 0.0

    # The clock

    def _listen(self) -> None:
        """From now on the upstream is expected to say something."""
        self._heard_at = self._loop.time()
        if self._timer is None and self._idle_seconds:
            self._timer = self._loop.call_later(self._idle_seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        if (self._head is None and self._answer is None) or not self._idle_seconds:
            return
        unsent = self._transport.get_write_buffer_size() if self._transport is not None else 0
        if self._paused or unsent < self._unsent:
            self._heard_at = self._loop.time()
        self._unsent = unsent
        left = self._heard_at + self._idle_seconds - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
            return
        where = "inside its answer" if self._answer is not None else "before its answer"
        self._fail(UpstreamTimeout(f"the upstream went quiet {where}"))

    # What the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def data_received(self, data: bytes) -> None:
        if self._parser is None:
            return
        self._heard_at = self._loop.time()
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._flush()
            self._fail(self._nonsense())
            return
        self._renew()
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._fail(UpstreamError("the upstream's headers are too large"))
        self._flush()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = self._parser = self._poll = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.resume_writing()
        answer, self._answer = self._answer, None
        if answer is not None:
            # Without a length or chunks an answer ends with the connection; a reset is no end.
            if self._framed or error is not None:
                answer.fail(StreamTruncated("the upstream's answer ended early"))
            else:
                answer.end()
        self._settle(HungUp())

    # What the parser tells

    def on_message_begin(self) -> None:
        if self._head is None or self._answer is not None:
            raise UpstreamError("an answer that nobody asked for")
        self._in_head = True
        self._head_bytes = 0
        self._headers = []
        self._framed = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # a trailer
        self._headers.append((name, value))
        lower = name.lower()
        if lower == b"content-length" or (
            lower == b"transfer-encoding" and b"chunked" in value.lower()
        ):
            self._framed = True

    def on_headers_complete(self) -> None:
        self._in_head = False
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 200:
            return
        answer = self._answer = Answer(status, self._headers, self)
        self._settle(answer)
        if self._bodiless:
            # This parser expects the body that was announced, so the next one goes on from here.
            self._complete(answer, self._parser.should_keep_alive())
            self._parser = None

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        if self._answer is None or self._parser is None:
            return  # an interim answer, or one to HEAD
        self._flush()
        self._complete(self._answer, self._parser.should_keep_alive())

    def _complete(self, answer: Answer, reusable: bool) -> None:
        self._answer = None
        answer.end()
        if not reusable or not self._sent or self.closed:
            self.abort()
            return
        if self._paused:
            self.resume()
        self._released(self)

    def _renew(self) -> None:
        """A new parser after an answer to HEAD."""
        if self._parser is None and not self.closed:
            self._parser = httptools.HttpResponseParser(self)

    def _flush(self) -> None:
        pieces = self._pieces
        if not pieces:
            return
        self._pieces = []
        if self._answer is None:
            self.abort()  # more than was announced
        else:
            self._answer.feed(pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def _nonsense(self) -> UpstreamError:
        if self._answer is not None:
            return StreamTruncated("the upstream's answer ended in bytes that are not HTTP")
        return UpstreamError("the upstream did not answer in HTTP")

    def _fail(self, error: UpstreamError) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.fail(error)
        self._settle(error)
        self.abort()

    def _settle(self, told: Answer | Exception) -> None:
        """Tell whoever asked; from now on the connection may be another request's."""
        asked, self._head = self._head, None
        if asked is None or asked.done():
            return
        if isinstance(told, Answer):
            asked.set_result(told)
        else:
            asked.set_exception(told)
