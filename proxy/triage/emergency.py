"""A history that nearly fills the window comes in; a plan made by rule alone goes out."""

import math
from collections.abc import Iterator, Mapping

from proxy.triage.candidates import Candidate, Wanted, find_candidates
from proxy.triage.cost import BYTES_PER_TOKEN
from proxy.triage.plan import Act, Plan
from proxy.triage.session import Session
from proxy.triage.view import find_constraints, make_label

FULL_SHARE = 0.95
"""Of the window: an estimate above it would not be answered at all."""


def may_overflow(session: Session) -> bool:
    """Whether the whole history would nearly fill the window; most requests are far from it."""
    return len(session.raw) > _room(session, FULL_SHARE)


def plan_emergency(session: Session, plan: Plan | None, wanted: Wanted, now: float) -> Plan | None:
    """A plan that brings the prompt back to the budget's share of the window.

    What was decided but did not pay yet goes first, then results, then whole parts, also those that
    the judge would keep; far enough that the next request needs no other. It is the only plan that
    an estimate makes, because there will be no answer to learn from. None when there is no need, or
    nothing to take out.
    """
    base, settings = plan or Plan(""), session.settings
    size = _measure(session, base.acts)
    if size <= _room(session, FULL_SHARE):
        return None
    acts = {**base.acts, **base.pending}
    size = _measure(session, acts) if base.pending else size
    goal = _room(session, settings.window_share)
    undecided = Plan(base.anchor, acts)
    found = find_candidates(session.conversation, undecided, settings, wanted, forced=True)
    for candidate, act in _order(found.units):
        if size <= goal:
            break
        acts[candidate.link] = act
        size -= candidate.unit.size
    if len(acts) == len(base.acts):
        return None
    anchor = session.conversation.head.hex()
    return Plan(anchor, acts, {}, base.kept, base.anchor or None, "emergency", now)


def measure_density(session: Session, used: int) -> float | None:
    """Bytes to a token in a prompt that is at least half a window; None where that says nothing.

    Languages and escapes differ by a factor of three, so the next estimate goes by this.
    """
    window, stitched = session.settings.window_tokens, session.stitched
    if window is None or stitched is None or used <= 0:
        return None
    sent = len(stitched.body)
    if max(used, sent / BYTES_PER_TOKEN) <= window / 2:
        return None
    tools = len(session.scene.envelope.raw("tools") or b"")
    return (_weigh(session, session.acts, sent) + tools) / used


def _room(session: Session, share: float) -> float:
    """The bytes of messages that fill a share of the window; endless where that is not known."""
    window = session.settings.window_tokens
    if window is None:
        return math.inf
    density = session.previous.density if session.previous is not None else 0.0
    tools = len(session.scene.envelope.raw("tools") or b"")
    return share * window * (density or BYTES_PER_TOKEN) - tools


def _measure(session: Session, acts: Mapping[str, Act]) -> int:
    size = len(session.stitch(acts).body if acts else session.raw)
    return _weigh(session, acts, size)


def _weigh(session: Session, acts: Mapping[str, Act], size: int) -> int:
    """So many bytes of messages without those of pictures in what stays."""
    conversation = session.conversation
    stays = (unit for unit in conversation.units if unit.link.hex() not in acts)
    return size - sum(
        conversation.facts[position].media for unit in stays for position in unit.positions
    )


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
