"""One turn's bodies go up, round after round; one answer for the client comes out."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
import orjson

from proxy.errors import StreamTruncated, UpstreamError, UpstreamRefused
from proxy.observe.metrics import RoundOutcome
from proxy.plan.chain import read_text
from proxy.stream.collect import Answer, Call, read_completion, sum_usage
from proxy.stream.ending import fit_reason
from proxy.stream.splice import Splicer
from proxy.stream.sse import Splitter
from proxy.upstream.desk import Desk, Settled, render_call
from proxy.upstream.shape import (
    JSON_TYPE,
    flatten,
    is_events,
    outcome_of_reply,
    stream_of,
    with_type,
)
from proxy.upstream.transport import UpstreamResponse
from proxy.wire import Headers, JSONObject

GRACE_SECONDS = 2.0
"""How long the usage chunk may take after the finish reason; some servers never close."""
DONE = b"[DONE]"


class Report(msgspec.Struct, frozen=True):
    """One upstream call as the books want it; `outcome` is "ok" or what went wrong.

    `found` are the names of the tools that its searches have loaded.
    """

    context: str
    round: int
    started_at: float
    latency_ms: float
    usage: JSONObject | None
    model: str | None
    tools_sent: int | None
    outcome: str
    tier: str | None = None
    finding: RoundOutcome | None = None
    found: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Spoken:
    """What the client saw: needed to recognise the turn when it comes back as history."""

    text: str
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Completed:
    """A reply that is not a stream; `spoken` is None when it was not a chat completion."""

    status: int
    headers: Headers
    body: bytes
    spoken: Spoken | None


@dataclass(slots=True)
class _Round:
    """The clock and the findings of the call that is under way; no outcome while it is."""

    number: int = 1
    tools_sent: int = 0
    context: str = "main"
    started_at: float = field(default_factory=time.time)
    clock: float = field(default_factory=time.perf_counter)
    usage: JSONObject | None = None
    model: str | None = None
    tier: str | None = None
    finding: RoundOutcome | None = None
    found: tuple[str, ...] = ()
    outcome: str | None = None


class Host(Protocol):
    """What rounds need of the turn around them.

    It must not hold the rounds: a cycle would keep the turn's body until the next collection.
    """

    async def send(self, body: bytes) -> UpstreamResponse:
        """Makes one upstream call."""

    def report(self, report: Report) -> None:
        """Hears of each call, also when it failed or the client went."""

    async def finish(self, spoken: Spoken) -> None:
        """Hears once what the client saw, before its last bytes."""

    def facts(self) -> JSONObject | None:
        """Members that the reply, or a stream's finish chunk, gets on top."""


class Rounds:
    """Runs the rounds of one turn, streaming or not."""

    def __init__(self, desk: Desk, host: Host) -> None:
        self.desk = desk
        self._host = host
        self._deadline = time.perf_counter() + desk.brief.settings.max_seconds
        self._usages: list[JSONObject | None] = []
        self._texts: list[str] = []
        self._current = _Round()

    async def open(self) -> UpstreamResponse:
        """Sends the next round."""
        if time.perf_counter() > self._deadline and self.desk.round > 0:
            self.desk.close()
        sent = len(self.desk.brief.arrangement.declared()) + self.desk.searching
        self._current = _Round(number=self.desk.round + 1, tools_sent=sent)
        try:
            return await self._host.send(self.desk.body())
        except UpstreamError as error:
            self._close_round(error.code or "upstream_error")
            raise
        except asyncio.CancelledError:
            self._close_round("client_gone")
            raise

    def abandon(self, outcome: str) -> None:
        """Reports a call that is still under way when nobody waits for it any more."""
        self._close_round(outcome)

    @property
    def failure(self) -> str:
        """Why a stream ended without an answer, as its last call has it."""
        outcome = self._current.outcome
        return "failed" if outcome in {None, "ok"} else str(outcome)

    async def complete(self, response: UpstreamResponse) -> Completed:
        """The whole turn as one JSON reply; an upstream's error is handed on as it is."""
        head: JSONObject | None = None
        while True:
            body, headers = await self._read(response), response.headers
            reply = self._parse(response, body)
            if reply is None:
                self._close_round(outcome_of_reply(response.status))
                return Completed(response.status, headers, body, None)
            answer = read_completion(reply)
            head = head or answer.head
            settled = self._settle(answer)
            if not settled.again:
                spoken = Spoken(self._join_texts(), settled.calls)
                await self._host.finish(spoken)
                if self._differs(spoken, answer):
                    body = self._render(reply, head, spoken, answer)
                    headers = with_type(headers, JSON_TYPE) if is_events(headers) else headers
                return Completed(response.status, headers, body, spoken)
            response = await self.open()

    async def stream(self, response: UpstreamResponse, splicer: Splicer) -> AsyncGenerator[bytes]:
        """The whole turn as one event stream.

        Raises UpstreamError while the client has seen nothing; after that it is an error frame.
        """
        try:
            async with aclosing(self._splice(response, splicer)) as spliced:
                async for chunk in spliced:
                    yield chunk
        except UpstreamError as error:
            self._close_round(error.code or "upstream_error")
            if not splicer.started:
                raise
            yield splicer.fail(error.body()["error"])

    async def _splice(self, response: UpstreamResponse, splicer: Splicer) -> AsyncGenerator[bytes]:
        again = True
        while again:
            visible = self.desk.visible()
            splicer.start_round(visible, self.desk.names())
            async with aclosing(self._relay(response, splicer)) as relayed:
                async for chunk in relayed:
                    yield chunk
            answer = splicer.answer()
            if answer.error is not None:
                self._close_round("upstream_error")
                return
            settled = self._settle(answer)
            again = settled.again
            if again:
                response = await self._open_next()
                continue
            held = [call for call in settled.calls if call.name not in visible]
            ending = splicer.release(held)
            await self._host.finish(Spoken(splicer.text, settled.calls))
            yield ending + splicer.finish(sum_usage(self._usages), self._host.facts())

    async def _open_next(self) -> UpstreamResponse:
        """Sends a further round of a stream; an upstream that refuses it raises UpstreamRefused."""
        response = await self.open()
        if response.status == 200:
            return response
        body = await self._read(response)
        self._close_round(f"http_{response.status}")
        raise UpstreamRefused(response.status, _error_of(body, response.status))

    async def _relay(self, response: UpstreamResponse, splicer: Splicer) -> AsyncGenerator[bytes]:
        """Passes one round on, read by read, until it is over; raises when it ends too early."""
        splitter = Splitter()
        chunks = stream_of(response)
        ended = False
        try:
            while not ended:
                chunk = await self._next_chunk(chunks, splicer)
                frames = splitter.finish() if chunk is None else splitter.feed(chunk)
                ended = chunk is None or any(frame.data == DONE for frame in frames)
                out = b"".join([splicer.feed(frame) for frame in frames])
                if out:
                    yield out
        except UpstreamError:
            raise
        except BaseException:
            self._close_round("client_gone")
            raise
        finally:
            self._current.usage = splicer.answer().usage
            await response.aclose()
        answer = splicer.answer()
        if not answer.complete and answer.error is None:
            raise StreamTruncated("the upstream's stream ended before its answer did")

    async def _next_chunk(self, chunks: AsyncIterator[bytes], splicer: Splicer) -> bytes | None:
        """The next read; None at the end, or when a finished answer has nothing more to say."""
        if not splicer.finished:
            return await anext(chunks, None)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                return await anext(chunks, None)
        return None

    async def _read(self, response: UpstreamResponse) -> bytes:
        try:
            return await response.read()
        except UpstreamError as error:
            self._close_round(error.code or "upstream_error")
            raise
        except asyncio.CancelledError:
            self._close_round("client_gone")
            raise
        finally:
            await response.aclose()

    def _settle(self, answer: Answer) -> Settled:
        self._current.usage = answer.usage
        self._current.model = answer.head.get("model")
        tier = answer.head.get("service_tier")
        self._current.tier = tier if isinstance(tier, str) else None
        self._usages.append(answer.usage)
        self._texts.append(read_text(answer.message.get("content")))
        known = len(self.desk.discovered)
        settled = self.desk.settle(answer)
        self._current.context, self._current.finding = settled.context, settled.finding
        self._current.found = tuple(self.desk.discovered[known:])
        self._close_round("no_answer" if settled.mute else "ok")
        if settled.mute:
            raise UpstreamError("the model only searched on after its last round")
        return settled

    def _join_texts(self) -> str:
        """The text of all rounds as the client gets it, joined as in a stream."""
        text = ""
        for said in self._texts[-1:] if self.desk.brief.hold_text else self._texts:
            apart = bool(text and said) and not (text[-1].isspace() or said.startswith("\n"))
            text += f"\n\n{said}" if apart else said
        return text

    def _close_round(self, outcome: str) -> None:
        """Reports the call under way, once."""
        current = self._current
        if current.outcome is not None:
            return
        current.outcome = outcome
        self._host.report(
            Report(
                context=current.context,
                round=current.number,
                started_at=current.started_at,
                latency_ms=(time.perf_counter() - current.clock) * 1000,
                usage=current.usage,
                model=current.model,
                tools_sent=current.tools_sent,
                outcome=outcome,
                tier=current.tier,
                finding=current.finding,
                found=current.found,
            )
        )

    def _parse(self, response: UpstreamResponse, body: bytes) -> JSONObject | None:
        """The chat completion in a body, in whichever shape it came; None when it is none."""
        if response.status != 200:
            return None
        try:
            reply = flatten(body) if is_events(response.headers) else orjson.loads(body)
        except orjson.JSONDecodeError:
            return None
        except UpstreamError as error:
            self._close_round(error.code or "upstream_error")
            raise
        return reply if isinstance(reply, dict) and reply.get("choices") else None

    def _differs(self, spoken: Spoken, answer: Answer) -> bool:
        """Whether the client gets anything but the bytes of the only round."""
        same = self.desk.round == 1 and list(spoken.calls) == answer.calls
        return not same or self._host.facts() is not None

    def _render(self, reply: JSONObject, head: JSONObject, spoken: Spoken, answer: Answer) -> bytes:
        """The last round's reply as the only one."""
        reply = {**reply, **(self._host.facts() or {})}
        reply.update({key: head[key] for key in ("id", "created") if key in head})
        usage = sum_usage(self._usages)
        if usage is not None:
            reply["usage"] = usage
        choice = reply["choices"][0]
        message = choice["message"]
        if spoken.text:
            message["content"] = spoken.text
        message.pop("tool_calls", None)
        if spoken.calls:
            message["tool_calls"] = [render_call(call) for call in spoken.calls]
        if answer.calls:
            choice["finish_reason"] = fit_reason(answer.finish_reason, bool(spoken.calls))
        return orjson.dumps(reply)


def _error_of(body: bytes, status: int) -> JSONObject:
    """The upstream's own error object, or one that names its status."""
    try:
        reply = orjson.loads(body)
    except orjson.JSONDecodeError:
        reply = None
    error = reply.get("error") if isinstance(reply, dict) else None
    if isinstance(error, dict):
        return error
    return {"message": f"the upstream answered with status {status}", "type": "upstream_error"}
