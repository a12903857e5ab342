"""A draft comes in; its rounds are run and become one reply of the client's kind."""

from proxy.account import REQUEST_ID, Account
from proxy.dispatch import Dispatch
from proxy.draft import Draft, Drafter
from proxy.facts import content_type, facts_of, outcome_of
from proxy.memory.session import Session
from proxy.memory.telling import precede
from proxy.plan.chain import extend_chain
from proxy.plan.exchange import Reply
from proxy.plan.weave import Memento
from proxy.stream.splice import Splicer
from proxy.stream.watched import Watched
from proxy.upstream.desk import Desk, render_call
from proxy.upstream.headers import response_headers
from proxy.upstream.rounds import Completed, Report, Rounds, Spoken
from proxy.upstream.shape import outcome_of_reply
from proxy.upstream.transport import UpstreamResponse
from proxy.wire import JSONObject

EVENT_STREAM = b"text/event-stream"


class Host:
    """The turn around its rounds: what they send, report, remember and explain."""

    def __init__(
        self,
        draft: Draft,
        dispatch: Dispatch,
        drafter: Drafter,
        account: Account,
        session: Session | None = None,
    ) -> None:
        self.session = session
        self._told: list[JSONObject] = []
        self.draft = draft
        self._dispatch = dispatch
        self._drafter = drafter
        self.account = account
        self.desk = Desk(draft.brief)

    async def send(self, body: bytes) -> UpstreamResponse:
        """Makes the next round's call."""
        return await self._dispatch.send(self.draft.opened, body, self.desk.round + 1)

    def report(self, report: Report) -> None:
        """Books a call."""
        self.account.enter(report)

    async def finish(self, spoken: Spoken) -> None:
        """Books the turn and keeps what the client's next request will lack."""
        self.account.discover(self.desk.discovered)
        called = [call.name for call in spoken.calls]
        self.draft.toolbox.usage.update(called)
        self._drafter.learn(self.draft, self.desk.parked.before, called)
        await self._remember(spoken)
        if self.session is not None:
            self._told = await self.session.join()
        self.account.close("ok", spoken)

    def facts(self) -> JSONObject | None:
        """The plan, for a client that asked for it, and what became of a wish to remember."""
        facts: JSONObject = {}
        if self.draft.opened.policy.explain:
            facts = {**self.account.explain(), "rounds": self.desk.round}
        if self._told:
            facts["memory"] = self._told
        return {"usher": facts} if facts else None

    def leave(self) -> None:
        """The reply is over: what memory could not tell in time is told with the next one."""
        if self.session is not None:
            self.session.give_back()

    async def _remember(self, spoken: Spoken) -> None:
        message: JSONObject = {"role": "assistant", "content": spoken.text}
        if spoken.calls:
            message["tool_calls"] = [render_call(call) for call in spoken.calls]
        parked = self.desk.parked
        memento = Memento(
            discovered=tuple(self.desk.discovered),
            before=tuple(parked.before),
            message=parked.message,
            after=tuple(parked.after),
        )
        tenant = self.draft.opened.request.caller.tenant
        await self._drafter.remember(tenant, extend_chain(self.draft.link, message), memento)


async def converse(
    draft: Draft,
    dispatch: Dispatch,
    drafter: Drafter,
    account: Account,
    session: Session | None = None,
) -> Reply:
    """The reply, which is a stream when the client asked for one and the upstream gave one.

    Raises UpstreamError when there is none.
    """
    host = Host(draft, dispatch, drafter, account, session)
    rounds = Rounds(host.desk, host)
    overhead = account.stamp()
    try:
        first = await rounds.open()
        account.adopt(first.headers)
        if draft.brief.stream and _is_stream(first):
            return _stream(rounds, first, host, overhead)
        completed = await rounds.complete(first)
    except BaseException as error:
        account.close(outcome_of(error))
        host.leave()
        raise
    host.leave()
    account.close("ok" if completed.spoken else outcome_of_reply(completed.status))
    return _whole(completed, account, host.desk.round, overhead)


def _stream(rounds: Rounds, first: UpstreamResponse, host: Host, overhead: float) -> Reply:
    async def end(outcome: str) -> None:
        rounds.abandon(outcome)
        host.account.close(rounds.failure if outcome == "ok" else outcome)
        host.leave()
        await first.aclose()

    headers = response_headers(first.headers, altered=True)
    headers.extend(facts_of(host.account.plan, overhead))
    chunks = rounds.stream(first, _make_splicer(host.draft))
    if host.session is not None:
        chunks = precede(chunks, host.session)
    return Reply(first.status, headers, Watched(chunks, end), pings=True)


def _whole(completed: Completed, account: Account, rounds: int, overhead: float) -> Reply:
    headers = response_headers(completed.headers, altered=True)
    headers = [(name, value) for name, value in headers if name != REQUEST_ID]
    headers.append((REQUEST_ID, account.request_id.encode("latin-1")))
    headers.extend(facts_of(account.plan, overhead))
    headers.append((b"x-usher-rounds", str(rounds).encode()))
    return Reply(completed.status, headers, completed.body)


def _make_splicer(draft: Draft) -> Splicer:
    options = draft.brief.envelope.get("stream_options")
    wants_usage = isinstance(options, dict) and options.get("include_usage") is True
    return Splicer(include_usage=wants_usage, hold_text=draft.brief.hold_text)


def _is_stream(response: UpstreamResponse) -> bool:
    return response.status == 200 and content_type(response.headers).startswith(EVENT_STREAM)
