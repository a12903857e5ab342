"""A draft comes in; its rounds are run and become one reply of the client's kind."""

import time

from proxy.account import Account
from proxy.dispatch import Dispatch
from proxy.draft import Draft, Drafter
from proxy.facts import content_type, facts_of, outcome_of
from proxy.plan.chain import extend_chain
from proxy.plan.exchange import Reply
from proxy.plan.plan import RequestPlan
from proxy.plan.weave import Memento
from proxy.stream.splice import Splicer
from proxy.stream.watched import Watched
from proxy.upstream.desk import Desk, render_call
from proxy.upstream.headers import response_headers
from proxy.upstream.rounds import Completed, Hooks, Rounds, Spoken
from proxy.upstream.transport import UpstreamResponse
from proxy.wire import JSONObject

EVENT_STREAM = b"text/event-stream"


class Conversation:
    """One turn whose tools are deferred, from its first round to its books."""

    def __init__(
        self, draft: Draft, dispatch: Dispatch, drafter: Drafter, account: Account
    ) -> None:
        self._draft = draft
        self._dispatch = dispatch
        self._drafter = drafter
        self._account = account
        self._desk = Desk(draft.brief)
        self._rounds = Rounds(
            self._desk, Hooks(self._send, account.enter, self._finish, self._explain)
        )

    async def reply(self) -> Reply:
        """The reply, which is a stream when the client asked for one and the upstream gave one.

        Raises UpstreamError when there is none.
        """
        overhead = (time.perf_counter() - self._account.clock) * 1000
        try:
            first = await self._rounds.open()
            if self._draft.brief.stream and _is_stream(first):
                return self._stream(first, overhead)
            completed = await self._rounds.complete(first)
        except BaseException as error:
            self._account.close(outcome_of(error))
            raise
        self._account.close("ok" if completed.spoken else f"http_{completed.status}")
        return _whole(completed, self._account.plan, self._desk.round, overhead)

    def _stream(self, first: UpstreamResponse, overhead: float) -> Reply:
        async def end(outcome: str) -> None:
            self._rounds.abandon(outcome)
            self._account.close("failed" if outcome == "ok" else outcome)
            await first.aclose()

        headers = response_headers(first.headers, altered=True)
        headers.extend(facts_of(self._account.plan, overhead))
        chunks = self._rounds.stream(first, _make_splicer(self._draft))
        return Reply(first.status, headers, Watched(chunks, end), pings=True)

    async def _send(self, body: bytes) -> UpstreamResponse:
        return await self._dispatch.send(self._draft.opened, body, self._desk.round + 1)

    async def _finish(self, spoken: Spoken) -> None:
        self._account.discover(self._desk.discovered)
        self._draft.toolbox.usage.update(call.name for call in spoken.calls)
        await self._remember(spoken)
        self._account.close("ok", spoken)

    def _explain(self) -> JSONObject | None:
        if not self._draft.opened.policy.explain:
            return None
        return {"usher": {**self._account.plan.describe(), "rounds": self._desk.round}}

    async def _remember(self, spoken: Spoken) -> None:
        """Keeps what the client does not see of this turn but its next request needs back."""
        message: JSONObject = {"role": "assistant", "content": spoken.text}
        if spoken.calls:
            message["tool_calls"] = [render_call(call) for call in spoken.calls]
        parked = self._desk.parked
        memento = Memento(
            discovered=tuple(self._desk.discovered),
            before=tuple(parked.before),
            message=parked.message,
            after=tuple(parked.after),
        )
        tenant = self._draft.opened.request.caller.tenant
        await self._drafter.remember(tenant, extend_chain(self._draft.link, message), memento)


def _whole(completed: Completed, plan: RequestPlan, rounds: int, overhead: float) -> Reply:
    headers = response_headers(completed.headers, altered=True)
    headers.extend(facts_of(plan, overhead))
    headers.append((b"x-usher-rounds", str(rounds).encode()))
    return Reply(completed.status, headers, completed.body)


def _make_splicer(draft: Draft) -> Splicer:
    options = draft.brief.envelope.get("stream_options")
    wants_usage = isinstance(options, dict) and options.get("include_usage") is True
    return Splicer(include_usage=wants_usage, hold_text=draft.brief.hold_text)


def _is_stream(response: UpstreamResponse) -> bool:
    return response.status == 200 and content_type(response.headers).startswith(EVENT_STREAM)
