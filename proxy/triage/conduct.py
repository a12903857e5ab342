"""Requests and the usage of their answers come in; edited histories and new plans come out."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from proxy.ledger.usage import Tokens
from proxy.triage.cap import Cap
from proxy.triage.cost import count_misses, is_uncached
from proxy.triage.emergency import measure_density
from proxy.triage.hear import Heard
from proxy.triage.history import Histories
from proxy.triage.inforce import InForce
from proxy.triage.plan import Sent
from proxy.triage.planner import Planner
from proxy.triage.scope import is_compaction, reason_to_leave, reason_to_pass
from proxy.triage.session import Gate, Mode, Prefixes, Scene, Session
from proxy.triage.signed import family_of
from proxy.triage.store import Plans
from proxy.triage.tally import TriageTally
from proxy.triage_settings import Limits, Triage
from proxy.upstream.transport import UpstreamResponse
from proxy.wire import JSON

Windows: TypeAlias = Callable[[str, str], int | None]


def no_window(provider: str, model: str) -> int | None:  # noqa: ARG001 - a Windows
    """Nothing is known of any model."""
    return None


@dataclass(frozen=True, slots=True)
class Passed:
    """A request that triage leaves alone, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Parts:
    """What triage works with; `shadow` are the plans that are made in observe mode.

    `windows` knows how long a prompt a provider's model takes.
    """

    plans: Plans
    shadow: Plans
    planner: Planner
    tally: TriageTally
    spawn: Callable[..., object]
    clock: Callable[[], float] = time.time
    windows: Windows = no_window


class Conduct:
    """Triage of all conversations: before a request and after its answer."""

    def __init__(self, settings: Triage, limits: Limits, parts: Parts) -> None:
        self._settings = settings
        self._fitted: dict[int, Triage] = {}
        self._parts = parts
        self._histories = Histories()
        self._prefixes = Prefixes()
        self._in_force = InForce(parts.plans, parts.shadow, parts.tally, parts.clock)
        most = limits.max_tool_result_chars
        self._cap = None if most is None else Cap(most)

    def mode_of(self, wish: str | None) -> Mode:
        """What holds for a request: its own wish, else the setting."""
        match wish:
            case "on" | "off":
                return "on" if wish == "on" else "off"
            case "shadow":
                return "observe"
        return self._settings.mode

    @property
    def idle(self) -> bool:
        """Whether nothing is to be done for requests without a wish of their own."""
        return self._settings.mode == "off" and self._cap is None

    def _fit(self, scene: Scene) -> Triage:
        """The settings with the window of the model, where the operator named none."""
        if self._settings.window_tokens is not None:
            return self._settings
        window = self._parts.windows(scene.provider, scene.model)
        if window is None:
            return self._settings
        if window not in self._fitted:
            self._fitted[window] = self._settings.model_copy(update={"window_tokens": window})
        return self._fitted[window]

    async def open(self, scene: Scene) -> Session | Passed | None:
        """The session of a request; None when triage is off for it."""
        if scene.mode == "off" and self._cap is None:
            return None
        reason = reason_to_pass(scene.envelope)
        if reason is not None:
            return Passed(reason)
        raw = scene.envelope.raw("messages") or memoryview(b"")
        tenant = scene.caller.tenant
        conversation = self._histories.read(raw, tenant, scene.user)
        if conversation is None:
            return Passed("malformed")
        reason = reason_to_leave(conversation)
        if reason is not None:
            return Passed(reason)
        session = Session(
            scene,
            conversation,
            self,
            self._prefixes,
            self._fit(scene),
            cap=self._cap,
            compaction=is_compaction(conversation),
        )
        await self._in_force.find(session)
        return session

    async def sent(self, session: Session) -> None:
        """Notes how a request goes up."""
        stitched = session.stitched
        if stitched is None or session.scene.mode == "observe":
            return
        if session.moved:
            self._parts.tally.moved()
        await self._note(session, self._describe(session))

    def _describe(self, session: Session) -> Sent:
        """How the request goes up, and what earlier answers have taught."""
        plan = session.plan.anchor if session.plan is not None and session.acts else ""
        state = session.stitched.state if session.stitched is not None else ""
        before = session.previous
        taught = (before.density, before.misses) if before is not None else ()
        return Sent(plan, state, self._parts.clock(), *taught)

    async def _note(self, session: Session, sent: Sent) -> None:
        await self._parts.plans.note(session.scene.caller.tenant, session.conversation.head, sent)

    def _learn(self, session: Session, tokens: Tokens) -> Sent | None:
        """What an answer teaches of its provider; None where that is nothing new."""
        known, before = self._describe(session), session.previous
        idle = self._parts.clock() - before.at if before is not None else math.inf
        warm = not session.moved and idle < session.settings.cost.cache_seconds
        misses = count_misses(before, tokens, warm=warm)
        session.uncached = is_uncached(misses, session.settings)
        density = measure_density(session, tokens.prompt or 0) or known.density
        new = msgspec.structs.replace(known, density=density, misses=misses)
        return new if new != known and session.scene.mode == "on" else None

    def hear(self, session: Session, response: UpstreamResponse) -> UpstreamResponse:
        """The same response; signatures in it are noted with what they were made from."""
        if session.scene.mode == "observe" or session.stitched is None:
            return response
        tenant, state = session.scene.caller.tenant, session.stitched.state
        family = family_of(session.scene.model)

        async def note(seal: bytes) -> None:
            session.signed = True
            await self._parts.plans.made(tenant, seal, state, family)

        return Heard(response, note)

    def ended(self, session: Session, tokens: Tokens) -> None:
        """Hears what the answer's prompt came to; a decision is made beside everything else."""
        if session.scene.mode == "off":
            return
        self._parts.tally.answered(session, tokens)
        if session.gate is not None and session.conversation.asks:
            self._parts.spawn(self._pin(session, session.gate))
        learnt = self._learn(session, tokens)
        if learnt is not None:
            self._parts.spawn(self._note(session, learnt))
        settings = session.settings
        share = settings.cost.uncached_share if session.uncached else 1.0
        if tokens.prompt is None or tokens.prompt > share * settings.high_water:
            self._parts.spawn(self._decide(session, tokens.prompt))

    async def _pin(self, session: Session, gate: Gate) -> None:
        """A message that memory was asked in is none that may go."""
        if await gate.wanted():
            tenant = session.scene.caller.tenant
            await self._parts.plans.pin(tenant, session.conversation.head)

    async def explain(self, tenant: str, request_id: str) -> JSON:
        """What was decided after a request, or None."""
        return await self._parts.plans.explain(tenant, request_id)

    async def _decide(self, session: Session, used: int | None) -> None:
        plans = self._in_force.plans(session)
        outcome = await self._parts.planner.decide(session, used, plans)
        self._parts.tally.decided(outcome)
        entry = {**outcome.describe(), "applied": session.describe(), "prompt_tokens": used}
        scene = session.scene
        for request_id in {scene.request_id, session.shown_id or scene.request_id}:
            await self._parts.plans.audit(scene.caller.tenant, request_id, entry)
