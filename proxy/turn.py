"""One chat turn, from the client's bytes to the client's bytes: the page to read first.

open   envelope, policy, target                                    proxy/draft.py
memory who asks → their memories put in, their message judged         proxy/memory/service.py
triage stored plan for this prefix → edited history                proxy/triage/conduct.py
draft  history, toolbox, memory of hidden rounds → eager | tool_search | surfaced
then   nothing to defer → forward: bytes up, bytes down            proxy/forward.py
       otherwise → rounds, spliced into one answer                 proxy/converse.py
always a ledger row per upstream call, whatever became of the client
"""

import asyncio
from dataclasses import dataclass, replace

import msgspec

from proxy.account import Account
from proxy.converse import converse
from proxy.dispatch import Dispatch
from proxy.draft import Drafter, Opened, reopen
from proxy.facts import plan_of, recounter
from proxy.forward import forward
from proxy.judge.bill import Bill
from proxy.ledger.store import Ledger
from proxy.memory.service import Brought, MemoryService
from proxy.memory.session import Session
from proxy.observe.metrics import Metrics
from proxy.plan.exchange import ChatRequest, Reply
from proxy.plan.plan import RequestPlan
from proxy.triage.conduct import Conduct, Passed
from proxy.triage.session import Scene as TriageScene
from proxy.wire import JSONObject


@dataclass(frozen=True, slots=True)
class Crew:
    """The collaborators of every turn."""

    drafter: Drafter
    dispatch: Dispatch
    ledger: Ledger
    metrics: Metrics
    memory: MemoryService | None = None
    triage: Conduct | None = None
    bill: Bill | None = None


class Turn:
    """Answers chat requests."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew

    async def chat(self, request: ChatRequest) -> Reply:
        """The reply to one request; cancelled when the client goes.

        Raises UsherError when there is no reply to hand on.
        """
        crew = self._crew
        opened = crew.drafter.open(request)
        provider = opened.target.provider
        account = Account(
            crew.ledger,
            crew.metrics,
            request,
            provider,
            opened.model,
            user=opened.user,
            bill=crew.bill,
        )
        return _tell(await self._answer(opened, account), account)

    async def _answer(self, opened: Opened, account: Account) -> Reply:
        opened, session = await self._remember(opened)
        account.memory = session
        reply = await self._reply(opened, account, session)
        if session is not None:
            reply.headers.append((b"x-usher-memory", session.header()))
        return reply

    async def _remember(self, opened: Opened) -> tuple[Opened, Session | None]:
        """What memory makes of a request; None where there is none, or it isn't understood."""
        if self._crew.memory is None or opened.envelope is None:
            return opened, None
        query = self._crew.drafter.query(opened)
        brought = Brought(
            opened.request,
            opened.envelope,
            opened.policy,
            opened.target,
            opened.model,
            opened.user,
            query,
        )
        session = await self._crew.memory.begin(brought)
        if session is not None and session.body is not None:
            opened = reopen(opened, session.body)
        return msgspec.structs.replace(opened, query=query) if query else opened, session

    async def _reply(self, opened: Opened, account: Account, session: Session | None) -> Reply:
        crew = self._crew
        if crew.triage is not None:
            opened = await self._triage(crew.triage, opened, account)
            if opened.triage is not None:
                opened.triage.gate = session
        draft = await crew.drafter.draft(opened)
        if isinstance(draft, RequestPlan):
            account.plan = draft
            return await forward(crew.dispatch, opened, account, session)
        account.plan = plan_of(draft, decisions=opened.policy.explain)
        account.recount = recounter(draft, account.plan)
        if opened.policy.deferral == "observe":
            account.plan = replace(account.plan, bypass="observe")
            return await forward(crew.dispatch, opened, account, session)
        return await converse(draft, crew.dispatch, crew.drafter, account, session)

    async def _triage(self, triage: Conduct, opened: Opened, account: Account) -> Opened:
        """The request with the history that its conversation's plan leaves it."""
        mode = triage.mode_of(opened.policy.triage)
        if opened.envelope is None or (mode == "off" and triage.idle):
            return opened
        request = opened.request
        found = await triage.open(
            TriageScene(
                opened.envelope,
                request.caller,
                request.request_id,
                mode,
                opened.user,
                opened.target.ask_usage,
                opened.target.provider,
                opened.target.model or opened.model,
            )
        )
        if isinstance(found, Passed):
            account.untriaged = found.reason
            return opened
        account.triage = found
        body = found.unthink() if found is not None else None
        opened = opened if body is None else reopen(opened, body)
        return msgspec.structs.replace(opened, triage=found)

    async def explain(self, request: ChatRequest) -> JSONObject:
        """What would be kept, deferred and predicted, and why; nothing is sent."""
        draft = await self._crew.drafter.draft(self._crew.drafter.open(request))
        if isinstance(draft, RequestPlan):
            return draft.describe()
        await asyncio.to_thread(draft.toolbox.count)
        return plan_of(draft, decisions=True).describe()


def _tell(reply: Reply, account: Account) -> Reply:
    """The reply, with headers that say what became of its history and what judgments used."""
    value = account.triage_header()
    if value is not None:
        reply.headers.append((b"x-usher-triage", value))
    used = account.sum_judgments().describe()
    if used is not None:
        reply.headers.append((b"x-usher-classification", used))
    return reply
