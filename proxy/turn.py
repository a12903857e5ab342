"""One chat turn, from the client's bytes to the client's bytes: the page to read first.

open → draft ─┬─ nothing to defer ──────────────────────→ forward, byte for byte
└─ eager | tool_search | surfaced → rounds → splice → one answer
and a ledger row for every upstream call, whatever became of the client
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import orjson

from proxy.account import Account
from proxy.draft import Draft, Drafter, Opened, list_decisions
from proxy.errors import UpstreamTimeout, UsherError
from proxy.ledger.store import Ledger
from proxy.observe.metrics import Metrics
from proxy.plan.chain import extend_chain
from proxy.plan.exchange import ChatRequest, Reply
from proxy.plan.plan import RequestPlan
from proxy.plan.weave import Memento
from proxy.settings import Settings
from proxy.stream.meter import Meter
from proxy.stream.splice import Splicer
from proxy.stream.watched import Watched
from proxy.upstream.call import call
from proxy.upstream.decode import decode_response
from proxy.upstream.desk import Desk, render_call
from proxy.upstream.headers import request_headers, response_headers
from proxy.upstream.rounds import Completed, Hooks, Rounds, Spoken
from proxy.upstream.target import url_for
from proxy.upstream.transport import Transport, UpstreamRequest, UpstreamResponse
from proxy.wire import Headers, JSONObject

EVENT_STREAM = b"text/event-stream"
IDEMPOTENCY = b"idempotency-key"


@dataclass(frozen=True, slots=True)
class Crew:
    """The collaborators of every turn; `transports` are keyed by the kind of a target."""

    drafter: Drafter
    transports: Mapping[str, Transport]
    ledger: Ledger
    metrics: Metrics


class Turn:
    """Answers chat requests."""

    def __init__(self, settings: Settings, crew: Crew) -> None:
        self._settings = settings
        self._crew = crew

    async def chat(self, request: ChatRequest) -> Reply:
        """The reply to one request; cancelled when the client goes.

        Raises UsherError when there is no reply to hand on.
        """
        clock = time.perf_counter()
        opened = self._crew.drafter.open(request)
        async with _deadline(opened.policy.timeout):
            draft = await self._crew.drafter.draft(opened)
            if isinstance(draft, RequestPlan):
                return await self._forward(opened, draft, clock)
            if opened.policy.deferral == "observe":
                plan = replace(_plan_of(draft), bypass="observe")
                return await self._forward(opened, plan, clock)
            return await self._converse(draft, clock)

    async def explain(self, request: ChatRequest) -> JSONObject:
        """What would be kept, deferred and predicted, and why; nothing is sent."""
        draft = await self._crew.drafter.draft(self._crew.drafter.open(request))
        if isinstance(draft, RequestPlan):
            return draft.describe()
        await asyncio.to_thread(draft.toolbox.count)
        return _plan_of(draft, decisions=True).describe()

    async def _forward(self, opened: Opened, plan: RequestPlan, clock: float) -> Reply:
        """Bytes up, bytes down."""
        account = self._account(opened, plan)
        overhead = (time.perf_counter() - clock) * 1000
        try:
            response = await self._send(opened, _plain_body(opened))
        except BaseException as error:
            account.enter_single(_outcome(error))
            account.close(_outcome(error))
            raise
        headers = response_headers(response.headers)
        headers.extend(_facts(plan, overhead))
        meter = Meter(_content_type(response.headers))

        async def end(outcome: str) -> None:
            if outcome == "ok" and response.status >= 400:
                outcome = f"http_{response.status}"
            account.enter_single(outcome, *meter.read())
            account.close(outcome)
            await response.aclose()

        return Reply(response.status, headers, Watched(_metered(response, meter), end))

    async def _converse(self, draft: Draft, clock: float) -> Reply:
        """The rounds of a turn whose tools are deferred."""
        plan = _plan_of(draft)
        account = self._account(draft.opened, plan)
        desk = Desk(draft.brief)

        async def send(body: bytes) -> UpstreamResponse:
            number = desk.round + 1
            return decode_response(await self._send(draft.opened, body, number))

        async def finish(spoken: Spoken) -> None:
            account.plan = replace(plan, discovered=tuple(desk.discovered))
            draft.toolbox.usage.update(call.name for call in spoken.calls)
            await self._remember(draft, desk, spoken)
            account.close("ok", spoken)

        def facts() -> JSONObject | None:
            if not draft.opened.policy.explain:
                return None
            return {"usher": {**account.plan.describe(), "rounds": desk.round}}

        rounds = Rounds(desk, Hooks(send, account.enter, finish, facts))
        overhead = (time.perf_counter() - clock) * 1000
        try:
            first = await rounds.open()
            if not draft.brief.stream or not _is_stream(first):
                completed = await rounds.complete(first)
                account.close("ok" if completed.spoken else f"http_{completed.status}")
                return _whole(completed, account.plan, desk.round, overhead)
        except BaseException as error:
            account.close(_outcome(error))
            raise
        headers = response_headers(first.headers, altered=True)
        headers.extend(_facts(plan, overhead))

        async def end(outcome: str) -> None:
            rounds.abandon(outcome)
            account.close("failed" if outcome == "ok" else outcome)
            await first.aclose()

        chunks = rounds.stream(first, _make_splicer(draft))
        return Reply(first.status, headers, Watched(chunks, end), pings=True)

    async def _remember(self, draft: Draft, desk: Desk, spoken: Spoken) -> None:
        """Keeps what the client does not see of this turn but its next request needs back."""
        message: JSONObject = {"role": "assistant", "content": spoken.text}
        if spoken.calls:
            message["tool_calls"] = [render_call(call) for call in spoken.calls]
        parked = desk.parked
        memento = Memento(
            discovered=tuple(desk.discovered),
            before=tuple(parked.before),
            message=parked.message,
            after=tuple(parked.after),
        )
        link = extend_chain(draft.link, message)
        await self._crew.drafter.remember(draft.opened.request.caller.tenant, link, memento)

    async def _send(self, opened: Opened, body: bytes, number: int = 0) -> UpstreamResponse:
        """One upstream call; `number` is that of the round, 0 for bytes that are not ours."""
        request, target = opened.request, opened.target
        upstream = self._settings.upstream
        return await call(
            self._crew.transports[target.kind],
            UpstreamRequest(
                method="POST",
                url=url_for(target, request.path, request.query, request.azure_deployment),
                headers=request_headers(
                    _round_headers(request.headers, number),
                    target,
                    intercepted=number > 0,
                    own_credentials=not request.caller.used_gateway_key,
                ),
                body=body,
                connect_seconds=upstream.connect_seconds,
                idle_seconds=upstream.idle_seconds,
            ),
            upstream.retries,
        )

    def _account(self, opened: Opened, plan: RequestPlan) -> Account:
        crew = self._crew
        return Account(
            crew.ledger, crew.metrics, opened.request, opened.target.provider, opened.model, plan
        )


@asynccontextmanager
async def _deadline(seconds: float | None) -> AsyncIterator[None]:
    """Bounds the time until a reply, or a stream's head, is there."""
    if seconds is None:
        yield
        return
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise UpstreamTimeout(f"no answer within the {seconds:g} s of x-usher-timeout") from None


def _plan_of(draft: Draft, *, decisions: bool = False) -> RequestPlan:
    arrangement = draft.arrangement
    surfaced = arrangement.surfaced
    tools = len(draft.toolbox.catalogue.tools)
    return RequestPlan(
        bypass=None,
        tools=tools,
        kept=len(arrangement.eager),
        deferred=tools - len(arrangement.eager) - len(surfaced.names),
        predicted=tuple(surfaced.predicted),
        guessed=surfaced.guessed,
        discovered=tuple(surfaced.discovered),
        called=draft.history.called,
        saved=draft.toolbox.count_saved(arrangement.declared()),
        sent=draft.toolbox.count_sent(arrangement.declared()),
        delivery="frozen" if arrangement.frozen else "append",
        decisions=tuple(list_decisions(draft)) if decisions else (),
    )


def _plain_body(opened: Opened) -> bytes:
    """The client's own bytes, unless they hold options of ours or the target has another model."""
    envelope, model = opened.envelope, opened.target.model
    changes: dict[str, bytes | None] = {}
    if envelope is not None and "usher" in envelope:
        changes["usher"] = None
    if envelope is not None and model is not None and "model" in envelope:
        changes["model"] = orjson.dumps(model)
    if not changes or envelope is None or not envelope.spliceable:
        return opened.request.body
    return envelope.edit(changes)


def _round_headers(headers: Headers, number: int) -> Headers:
    """The client's headers; an idempotency key stands for one call, so later rounds vary it."""
    if number < 2:
        return headers
    suffix = b"-r%d" % number
    return [(n, v + suffix if n.lower() == IDEMPOTENCY else v) for n, v in headers]


def _whole(completed: Completed, plan: RequestPlan, rounds: int, overhead: float) -> Reply:
    headers = response_headers(completed.headers, altered=True)
    headers.extend(_facts(plan, overhead))
    headers.append((b"x-usher-rounds", str(rounds).encode()))
    return Reply(completed.status, headers, completed.body)


def _facts(plan: RequestPlan, overhead: float) -> Headers:
    """What Usher did, as response headers; what is not known is left out."""
    facts: Headers = [(b"x-usher-overhead-ms", b"%.2f" % overhead)]
    if plan.tools:
        facts.append((b"x-usher-tools", plan.summary().encode()))
    if plan.saved is not None:
        facts.append((b"x-usher-tokens-saved", str(plan.saved).encode()))
    return facts


async def _metered(response: UpstreamResponse, meter: Meter) -> AsyncGenerator[bytes]:
    """The upstream's reads as they come, with an eye on the usage that they state."""
    async for chunk in response.chunks():
        meter.feed(chunk)
        yield chunk


def _make_splicer(draft: Draft) -> Splicer:
    options = draft.brief.envelope.get("stream_options")
    wants_usage = isinstance(options, dict) and options.get("include_usage") is True
    return Splicer(include_usage=wants_usage, hold_text=draft.brief.hold_text)


def _content_type(headers: Headers) -> bytes:
    return next((value.lower() for name, value in headers if name.lower() == b"content-type"), b"")


def _is_stream(response: UpstreamResponse) -> bool:
    return response.status == 200 and _content_type(response.headers).startswith(EVENT_STREAM)


def _outcome(error: BaseException) -> str:
    if isinstance(error, UsherError):
        return error.code or "failed"
    return "client_gone" if isinstance(error, asyncio.CancelledError | GeneratorExit) else "failed"
