"""One chat turn, from the client's bytes to the client's bytes: the page to read first.

open   envelope, policy, target                                    proxy/draft.py
draft  history, toolbox, memory of hidden rounds → eager | tool_search | surfaced
then   nothing to defer → forward: bytes up, bytes down            proxy/forward.py
       otherwise → rounds, spliced into one answer                 proxy/converse.py
always a ledger row per upstream call, whatever became of the client
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from proxy.account import Account
from proxy.converse import converse
from proxy.dispatch import Dispatch
from proxy.draft import Drafter, Opened
from proxy.errors import UpstreamTimeout
from proxy.facts import plan_of
from proxy.forward import forward
from proxy.ledger.store import Ledger
from proxy.observe.metrics import Metrics
from proxy.plan.exchange import ChatRequest, Reply
from proxy.plan.plan import RequestPlan
from proxy.wire import JSONObject


@dataclass(frozen=True, slots=True)
class Crew:
    """The collaborators of every turn."""

    drafter: Drafter
    dispatch: Dispatch
    ledger: Ledger
    metrics: Metrics


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
            crew.ledger, crew.metrics, request, provider, opened.model, user=opened.user
        )
        if opened.policy.timeout is None:
            return await self._answer(opened, account)
        async with _deadline(opened.policy.timeout):
            return await self._answer(opened, account)

    async def _answer(self, opened: Opened, account: Account) -> Reply:
        crew = self._crew
        draft = await crew.drafter.draft(opened)
        if isinstance(draft, RequestPlan):
            account.plan = draft
            return await forward(crew.dispatch, opened, account)
        account.plan = plan_of(draft)
        if opened.policy.deferral == "observe":
            account.plan = replace(account.plan, bypass="observe")
            return await forward(crew.dispatch, opened, account)
        return await converse(draft, crew.dispatch, crew.drafter, account)

    async def explain(self, request: ChatRequest) -> JSONObject:
        """What would be kept, deferred and predicted, and why; nothing is sent."""
        draft = await self._crew.drafter.draft(self._crew.drafter.open(request))
        if isinstance(draft, RequestPlan):
            return draft.describe()
        await asyncio.to_thread(draft.toolbox.count)
        return plan_of(draft, decisions=True).describe()


@asynccontextmanager
async def _deadline(seconds: float) -> AsyncIterator[None]:
    """Bounds the time until a reply, or a stream's head, is there."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise UpstreamTimeout(f"no answer within the {seconds:g} s of x-usher-timeout") from None
