"""A history that nearly fills the window comes in; a plan made by rule alone goes out."""

from collections.abc import Iterator

from proxy.triage.candidates import Candidate, find_candidates
from proxy.triage.cost import BYTES_PER_TOKEN
from proxy.triage.plan import Act, Plan
from proxy.triage.session import Session
from proxy.triage.view import find_constraints, make_label
from proxy.triage_settings import Triage

FULL_SHARE = 0.95
"""Of the window: an estimate above it would not be answered at all."""


def plan_emergency(
    session: Session, plan: Plan | None, settings: Triage, now: float
) -> Plan | None:
    """A plan that brings the prompt under the force mark: first results go, then whole parts.

    The only plan that an estimate makes, because there will be no answer to learn from. None when
    there is no need, or nothing to take out.
    """
    window = settings.window_tokens
    if window is None:
        return None
    tools = len(session.scene.envelope.raw("tools") or b"")
    acts = dict(plan.acts) if plan is not None else {}
    size = len(session.stitch(acts).body) if acts else len(session.raw)
    if (size + tools) / BYTES_PER_TOKEN <= FULL_SHARE * window:
        return None
    goal = settings.force_water * BYTES_PER_TOKEN - tools
    candidates = find_candidates(session.conversation, plan, settings, forced=True).units
    new: dict[str, Act] = {}
    for candidate, act in _order(candidates):
        if size <= goal:
            break
        new[candidate.link] = act
        size -= candidate.unit.size
    if not new:
        return None
    acts.update(new)
    kept = plan.kept if plan is not None else {}
    parent = plan.anchor if plan is not None else None
    return Plan(session.conversation.head.hex(), acts, {}, kept, parent, "emergency", now)


def _order(candidates: list[Candidate]) -> Iterator[tuple[Candidate, Act]]:
    """Oldest first: tool steps, then turns without a constraint, then replies to the others."""
    oldest = sorted(candidates, key=lambda candidate: candidate.unit.number)
    for candidate in oldest:
        if candidate.unit.kind == "step":
            yield candidate, Act("clear", "", candidate.unit.number)
    for candidate in oldest:
        if candidate.unit.kind != "step" and not find_constraints(candidate.messages):
            label = make_label(candidate.unit, candidate.messages)
            yield candidate, Act("drop", label, candidate.unit.number)
