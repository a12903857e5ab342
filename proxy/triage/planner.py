"""A conversation over budget comes in; it is judged, and a plan for its next request is kept."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from proxy.judge.job import Purpose
from proxy.triage.candidates import Candidate, Found, Wanted, find_candidates, is_ripe, newest_text
from proxy.triage.cost import Change, Verdict, measure, tokens_of, weigh
from proxy.triage.decide import Decider, Ruling
from proxy.triage.inforce import begin_of_signed_turn
from proxy.triage.plan import Act, Plan
from proxy.triage.session import Session
from proxy.triage.store import Plans
from proxy.triage.units import Conversation
from proxy.triage.view import make_label, read_unit
from proxy.triage.writer import Writer, bind_note
from proxy.triage_settings import Triage
from proxy.wire import JSONObject

CHARS_PER_TOKEN = 8
"""At most, in any language: a writer that pays no heed to its limit has not written a note."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one decision; `reason` says why nothing changed, if nothing did."""

    reason: str
    plan: Plan | None = None
    rulings: Sequence[Ruling] = field(default=())
    spared: Mapping[int, str] = field(default_factory=dict)
    change: Change | None = None

    def describe(self) -> JSONObject:
        """The audit's entry."""
        change = self.change
        return {
            "reason": self.reason,
            "plan": self.plan.name if self.plan is not None else None,
            "decisions": [r.describe(tokens_of(r.candidate.unit.size)) for r in self.rulings],
            "spared": {str(number): reason for number, reason in self.spared.items()},
            "tokens_removed": None if change is None else round(change.removed),
            "tokens_read_anew": None if change is None else round(change.behind),
        }


@dataclass(frozen=True, slots=True)
class Staff:
    """Who decides and who writes; None where nobody is configured."""

    decider: Decider | None
    writer: Writer | None


class Planner:
    """Decides once per head of a conversation, also when several requests end there."""

    def __init__(self, staff: Staff, clock: Callable[[], float] = time.time) -> None:
        self._staff = staff
        self._clock = clock
        self._busy: set[tuple[str, bytes]] = set()

    async def decide(self, session: Session, used: int | None, plans: Plans) -> Outcome:
        """Judge what is old, and commit a plan. Whatever is missing leaves everything as it is."""
        place = (session.scene.caller.tenant, session.conversation.head)
        reason = self._reason_to_wait(session, used)
        if reason is not None or used is None:
            return Outcome(reason or "no usage")
        if place in self._busy:
            return Outcome("being decided")
        self._busy.add(place)
        try:
            return await self._decide(session, used, plans)
        finally:
            self._busy.discard(place)

    def _reason_to_wait(self, session: Session, used: int | None) -> str | None:
        checks = (
            ("no usage reported", used is None),
            ("compaction", session.compaction),
            ("not woven", session.stitched is None),
            ("too short", not is_ripe(session.conversation, session.settings)),
            ("no judge", self._staff.decider is None),
        )
        return next((reason for reason, holds in checks if holds), None)

    async def _decide(self, session: Session, used: int, plans: Plans) -> Outcome:
        tenant, anchor = session.scene.caller.tenant, session.conversation.head.hex()
        plan = await plans.find(tenant, session.conversation)
        if plan is not None and plan.anchor == anchor:
            return Outcome("decided before", plan)
        forced = used > session.settings.force_water
        base = plan or Plan(anchor)
        running = Plan(anchor, dict(session.acts), {}, base.kept)
        wanted = Wanted(session.recalled, await plans.pinned(tenant, session.conversation))
        found = self._find_behind(running, session, used, wanted)
        if found is not None:
            base = running
        else:
            found = find_candidates(
                session.conversation, plan, session.settings, wanted, forced=forced
            )
        candidates = found.units[: session.settings.max_units]
        rulings: Sequence[Ruling] = ()
        if self._is_worth_asking(candidates, base, session, used):
            assert self._staff.decider is not None
            newest = newest_text(session.conversation)
            ruled = await self._staff.decider.decide(candidates, newest, _purpose(session))
            if ruled.failure is not None:
                return Outcome(ruled.failure, plan, spared=found.spared)
            rulings = ruled.rulings
        elif not base.pending:
            return Outcome("nothing large enough", plan, spared=found.spared)
        acts, rulings = await self._make_acts(rulings, session)
        if session.recall_name is not None:
            acts.update(age_notes(session.conversation, base, session.settings.note_turns))
        change = self._measure(session, base, {**base.pending, **acts}, used)
        verdict = weigh(change, session.settings, uncached=session.uncached)
        new = self._plan(session, base, (acts, rulings), verdict)
        kept = await plans.commit(tenant, session.conversation, new)
        reason = verdict if kept == new else "another worker decided"
        return Outcome(reason, kept, rulings, found.spared, change)

    def _find_behind(
        self, running: Plan, session: Session, used: int, wanted: Wanted
    ) -> Found | None:
        """In a turn with signed blocks: what is behind the last of them; None if not enough.

        A plan of it takes effect at once, on top of the one in force. One that touches more waits
        until the turn is over, as does any other when the answer is signed, too.
        """
        conversation, settings = session.conversation, session.settings
        if session.signed or begin_of_signed_turn(conversation) is None:
            return None
        last = conversation.chain.signed[-1]
        found = find_candidates(conversation, running, settings, wanted)
        behind = [candidate for candidate in found.units if candidate.unit.positions[0] > last]
        if not self._is_worth_asking(behind, running, session, used):
            return None
        ahead = (c.unit.number for c in found.units if c.unit.positions[0] <= last)
        return Found(behind, {**found.spared, **dict.fromkeys(ahead, "signed")})

    def _is_worth_asking(
        self, candidates: Sequence[Candidate], base: Plan, session: Session, used: int
    ) -> bool:
        """Whether what may go could be enough, were all of it dropped."""
        if not candidates:
            return False
        units = session.conversation.units
        pending = sum(unit.size for unit in units if unit.link.hex() in base.pending)
        most = tokens_of(pending + sum(candidate.unit.size for candidate in candidates))
        forced = used > session.settings.force_water
        return forced or most >= session.settings.cost.min_reclaim * used

    async def _make_acts(
        self, rulings: Sequence[Ruling], session: Session
    ) -> tuple[dict[str, Act], list[Ruling]]:
        """Acts of the rulings, and the rulings as they turned out."""
        wanted = [r.candidate for r in rulings if r.outcome == "compress"]
        writer = self._staff.writer
        notes: Mapping[str, str] = {}
        if wanted and writer is not None:
            notes = await writer.write(wanted, _purpose(session))
        acts: dict[str, Act] = {}
        final: list[Ruling] = []
        for ruling in rulings:
            candidate = ruling.candidate
            number = candidate.unit.number
            match ruling.outcome:
                case "drop":
                    acts[candidate.link] = Act(
                        "drop", make_label(candidate.unit, candidate.messages), number
                    )
                case "clear":
                    acts[candidate.link] = Act("clear", "", number)
                case "compress":
                    note = notes.get(candidate.link)
                    ruling = self._check_note(ruling, note, session.settings)  # noqa: PLW2901 - the same, concluded
                    if ruling.outcome == "compress":
                        bound = bind_note(note or "", candidate) or ""
                        acts[candidate.link] = Act("note", bound, number)
            final.append(ruling)
        return acts, final

    def _check_note(self, ruling: Ruling, note: str | None, settings: Triage) -> Ruling:
        """A unit stays when its note is missing, or saves too little."""
        if self._staff.writer is None:
            return _keep(ruling, "no writer")
        if note is None:
            return _keep(ruling, "no note")
        bound = bind_note(note, ruling.candidate)
        if bound is None:
            return _keep(ruling, "too many constraints")
        most = settings.max_note_share * ruling.candidate.unit.size
        if len(note) > CHARS_PER_TOKEN * settings.writer.max_tokens or len(bound.encode()) >= most:
            return _keep(ruling, "note too long")
        return ruling

    def _measure(self, session: Session, base: Plan, new: Mapping[str, Act], used: int) -> Change:
        """The change against what was sent; the recall tool, once it appears, moves everything."""
        before = bytes(session.stitch(base.acts).body)
        first = not base.acts and session.recall_name is not None
        after = bytes(session.stitch({**base.acts, **new}).body)
        return measure(before, after, used, whole=first)

    def _plan(
        self,
        session: Session,
        base: Plan,
        made: tuple[Mapping[str, Act], Sequence[Ruling]],
        verdict: Verdict,
    ) -> Plan:
        acts, rulings = made
        turn = session.conversation.turns
        stays = {r.candidate.link: turn for r in rulings if r.candidate.link not in acts}
        decided = {**base.pending, **acts}
        force = verdict in {"pays", "forced"}
        anchor = session.conversation.head.hex()
        return Plan(
            anchor=anchor,
            acts={**base.acts, **decided} if force else base.acts,
            pending={} if force else decided,
            kept={**base.kept, **stays},
            parent=base.anchor if base.anchor != anchor else None,
            reason=verdict,
            made_at=self._clock(),
        )


def age_notes(conversation: Conversation, plan: Plan, turns: int) -> dict[str, Act]:
    """Notes of old steps and replies as labels: they can be recalled, and would add up for ever.

    What the user said keeps its note. This waits for a plan that is made anyway.
    """
    aged: dict[str, Act] = {}
    for unit in conversation.units:
        act = plan.acts.get(unit.link.hex())
        old = unit.turn <= conversation.turns - turns
        if act is not None and act.kind == "note" and unit.kind != "head" and old:
            label = make_label(unit, read_unit(conversation, unit))
            aged[unit.link.hex()] = Act("drop", label, unit.number)
    return aged


def _keep(ruling: Ruling, reason: str) -> Ruling:
    return Ruling(
        ruling.candidate, ruling.suggestion, ruling.probability, ruling.threshold, "keep", reason
    )


def _purpose(session: Session) -> Purpose:
    scene = session.scene
    return Purpose(
        "triage",
        request_id=scene.request_id,
        tenant=scene.caller.tenant,
        key=scene.caller.key,
        user=scene.user,
        context="triage",
    )
