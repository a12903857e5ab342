"""A request's history comes in; the plan in force for it goes out, with what was sent before it.

A plan takes effect at once where nothing forbids it. Within a turn that holds signed reasoning it
may touch nothing in front of a block: a provider wants the blocks of a turn that it goes on with.
"""

from collections.abc import Callable, Mapping

from proxy.triage.candidates import Wanted
from proxy.triage.emergency import may_overflow, plan_emergency
from proxy.triage.plan import Plan, Sent
from proxy.triage.session import Session
from proxy.triage.signed import family_of
from proxy.triage.store import Plans
from proxy.triage.tally import TriageTally
from proxy.triage.units import Conversation


class InForce:
    """Finds the plans of requests, and puts into force what need not wait any longer."""

    def __init__(
        self, plans: Plans, shadow: Plans, tally: TriageTally, clock: Callable[[], float]
    ) -> None:
        self._plans = plans
        self._shadow = shadow
        self._tally = tally
        self._clock = clock

    def plans(self, session: Session) -> Plans:
        """Where the plans of such a request are."""
        return self._shadow if session.scene.mode == "observe" else self._plans

    async def find(self, session: Session) -> None:
        """Sets the session's plan and acts, and what is known of earlier requests."""
        conversation, tenant = session.conversation, session.scene.caller.tenant
        plans, mode = self.plans(session), session.scene.mode
        begun = begin_of_signed_turn(conversation)
        previous = conversation.heads[-2] if len(conversation.heads) > 1 else None
        last = len(conversation.links) - 1 if begun is not None else None
        wanted = [conversation.links[at] for at in (begun, previous, last) if at is not None]
        family = family_of(session.scene.model)
        seen = await plans.look(tenant, conversation, wanted, family)
        session.states = seen.states
        session.previous = None if previous is None else seen.sent.get(conversation.links[previous])
        if mode != "off" and seen.rooted:
            session.plan = await plans.find(tenant, conversation, rooted=True)
        if begun is not None and (mode == "on" or session.cap is not None):
            await self._keep_blocks(session, begun, seen.sent)
        elif mode == "on" and not session.compaction:
            await self._adopt(session, plans)
        session.acts = session.plan.acts if session.plan is not None else {}

    async def _adopt(self, session: Session, plans: Plans) -> None:
        """What is decided takes effect when the cache is cold anyway, or the window nearly full."""
        plan, now = session.plan, self._clock()
        new: Plan | None = None
        if plan is not None and plan.pending and session.previous is not None:
            idle = now - session.previous.at
            if idle > session.settings.cost.cache_seconds:
                new = plan.adopt(session.conversation.head.hex(), "cold", now)
        new = await self._plan_emergency(session, new or plan) or new
        if new is not None:
            await self._commit(session, plans, new)

    async def _plan_emergency(self, session: Session, plan: Plan | None) -> Plan | None:
        if not may_overflow(session):
            return None
        tenant = session.scene.caller.tenant
        pinned = await self.plans(session).pinned(tenant, session.conversation)
        return plan_emergency(session, plan, Wanted(remembered=pinned), self._clock())

    async def _commit(self, session: Session, plans: Plans, new: Plan) -> None:
        tenant = session.scene.caller.tenant
        session.plan = await plans.commit(tenant, session.conversation, new)
        self._tally.adopted(new.reason)

    async def _keep_blocks(self, session: Session, begun: int, sent: Mapping[bytes, Sent]) -> None:
        """The newest plan under which the blocks of the running turn stay valid.

        Where there is none their origin is not known, as after a restart, and where the window is
        nearly full they cannot stay: then they are left out, and the turn goes on without thinking.
        """
        if _breaks(session, session.plan, begun):
            session.plan = await self._earlier(session, begun, sent)
            session.unthinking = _breaks(session, session.plan, begun)
        if session.scene.mode != "on" or session.compaction:
            return
        urgent = await self._plan_emergency(session, session.plan)
        if urgent is not None:
            await self._commit(session, self.plans(session), urgent)
            session.unthinking = _breaks(session, session.plan, begun)

    async def _earlier(
        self, session: Session, begun: int, sent: Mapping[bytes, Sent]
    ) -> Plan | None:
        """The plan of the same request, of the one before, or of the first of the turn."""
        conversation = session.conversation
        same, first = sent.get(conversation.head), sent.get(conversation.links[begun])
        before = same or session.previous or first
        if before is None or not before.plan:
            return None
        return await self.plans(session).get(session.scene.caller.tenant, before.plan)


def begin_of_signed_turn(conversation: Conversation) -> int | None:
    """Where the running turn begins, if it holds signed reasoning."""
    signed = conversation.chain.signed
    if not signed:
        return None
    facts = conversation.facts
    for position in range(len(facts) - 1, -1, -1):
        if facts[position].role == "user":
            return position if signed[-1] > position else None
    return None


def _breaks(session: Session, plan: Plan | None, begun: int) -> bool:
    """Whether a block of the running turn was made from something else than it would have now."""
    acts = plan.acts if plan is not None and session.scene.mode == "on" else {}
    return any(position > begun for position in session.stitch(acts).stale)
