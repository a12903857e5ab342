"""One judgment's HTTP: a body goes out, a reading or a classified failure comes back.

Attempts, back-off and reading the body share the job's deadline, and each attempt is recorded,
also the one that is running when the caller goes away.
"""

import asyncio
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import orjson
from msgspec.structs import replace

from proxy.errors import UpstreamError, UpstreamTimeout
from proxy.judge.failures import RETRIED, Failed, Failure, classify
from proxy.judge.job import Attempt, Job
from proxy.judge.reading import Reading
from proxy.upstream.transport import Transport, UpstreamRequest, UpstreamResponse, take_whole
from proxy.wire import JSON, Headers, JSONObject

MAX_REPLY_BYTES = 4 * 1024 * 1024
BACKOFF_SECONDS = (0.25, 0.75, 1.5, 3.0)
_REQUEST_IDS = (b"x-typesafe-request-id", b"cf-ai-req-id", b"x-request-id", b"cf-ray")
_MAYBE_BILLED = frozenset({Failure.TIMEOUT, Failure.ABORTED})

Read = Callable[[JSON], Reading]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one backend's requests go; `decisions` says which price fields apply."""

    provider: str
    model: str
    url: str
    headers: Headers
    retries: int = 1
    connect_seconds: float = 2.0
    decisions: bool = True


class Reply(msgspec.Struct, frozen=True):
    """A whole reply."""

    status: int
    headers: Headers
    body: bytes


class Exchange:
    """Sends one endpoint's requests; remembers how long it usually takes."""

    def __init__(self, transport: Transport, endpoint: Endpoint) -> None:
        self._transport = transport
        self.endpoint = endpoint
        self._typical = 0.3

    async def post(self, body: JSONObject, read: Read, job: Job) -> Reading:
        """Send and read, trying again while it helps; raises Failed."""
        payload = orjson.dumps(body)
        attempt = 0
        while True:
            try:
                return await self._attempt(payload, read, job, attempt)
            except Failed as failed:
                wait = self._wait(failed, attempt)
                if wait is None or wait + self._typical >= job.deadline.remaining():
                    raise
            await asyncio.sleep(wait)
            attempt += 1

    def _wait(self, failed: Failed, attempt: int) -> float | None:
        if failed.failure not in RETRIED or attempt >= self.endpoint.retries:
            return None
        if failed.retry_after is not None:
            return failed.retry_after
        return BACKOFF_SECONDS[min(attempt, len(BACKOFF_SECONDS) - 1)]

    async def _attempt(self, payload: bytes, read: Read, job: Job, number: int) -> Reading:
        begun = time.monotonic()
        seed = Attempt(
            provider=self.endpoint.provider,
            model=self.endpoint.model,
            outcome=Failure.ABORTED,
            started_at=time.time(),
            latency_ms=0.0,
            estimate=estimate_tokens(len(payload)),
            decisions=self.endpoint.decisions,
            attempt=number,
        )
        ended = seed
        try:
            reading = await self._reading(payload, read, job)
            ended = replace(seed, outcome=reading.outcome, reading=reading)
            self._typical += 0.2 * (time.monotonic() - begun - self._typical)
        except Failed as failed:
            kept = seed.estimate if failed.failure in _MAYBE_BILLED else None
            ended = replace(seed, outcome=failed.failure, estimate=kept, status=failed.status)
            raise
        finally:
            job.record(replace(ended, latency_ms=(time.monotonic() - begun) * 1000))
        return reading

    async def _reading(self, payload: bytes, read: Read, job: Job) -> Reading:
        try:
            async with asyncio.timeout(job.deadline.remaining()):
                reply = await self._fetch(payload, job)
        except (TimeoutError, UpstreamTimeout):
            raise Failed(Failure.TIMEOUT) from None
        except UpstreamError:
            raise Failed(Failure.NETWORK) from None
        parsed = parse(reply.body)
        if reply.status != 200:
            raise classify(reply.status, parsed, reply.headers, time.time())
        if parsed is None:
            raise Failed(Failure.MALFORMED)
        return replace(read(parsed), provider_request_id=_request_id(reply.headers))

    async def _fetch(self, payload: bytes, job: Job) -> Reply:
        remaining = job.deadline.remaining()
        response = await self._transport.send(
            UpstreamRequest(
                method="POST",
                url=self.endpoint.url,
                headers=self.endpoint.headers,
                body=payload,
                connect_seconds=min(self.endpoint.connect_seconds, remaining),
                # The deadline is kept by our caller; in whole seconds it is nearly always the same
                # to the transport, whose clock then runs on from request to request.
                idle_seconds=math.ceil(remaining),
            )
        )
        try:
            body = take_whole(response)
            if body is None:
                body = await _collect(response)
            if len(body) > MAX_REPLY_BYTES:
                raise Failed(Failure.MALFORMED, status=response.status)
            return Reply(response.status, response.headers, body)
        finally:
            await response.aclose()


async def _collect(response: UpstreamResponse) -> bytes:
    """The body as it comes; not much more of it than is allowed."""
    body = bytearray()
    async for chunk in response.chunks():
        body += chunk
        if len(body) > MAX_REPLY_BYTES:
            break
    return bytes(body)


def parse(body: bytes) -> JSON:
    """Read JSON, also the kind with NaN in it, so that only the lying answer is lost."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def estimate_tokens(chars: int) -> int:
    """A decision request's input tokens, for attempts that never told (fitted to jev-latest)."""
    return 260 + chars // 5


def _request_id(headers: Headers) -> str | None:
    found = {name.lower(): value for name, value in headers}
    for name in _REQUEST_IDS:
        if name in found:
            return found[name].decode("latin-1")
    return None
