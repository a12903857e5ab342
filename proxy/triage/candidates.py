"""A conversation and what was decided before come in; the units that may be judged now go out."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from proxy.triage.plan import Plan
from proxy.triage.recall import describe
from proxy.triage.units import Conversation, Unit
from proxy.triage.view import find_quotes, is_pinned, is_quoted, read_unit
from proxy.triage_settings import Triage
from proxy.wire import JSONObject


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit that may be judged, and its messages in words."""

    unit: Unit
    messages: list[JSONObject]

    @property
    def link(self) -> str:
        """Its key in a plan."""
        return self.unit.link.hex()


@dataclass(frozen=True, slots=True)
class Wanted:
    """Positions that somebody has asked for.

    In front of some stands what was recalled; some the memory gate took for memory requests.
    """

    recalled: Container[int] = ()
    remembered: Container[int] = ()


NOTHING = Wanted()


@dataclass(frozen=True, slots=True)
class Found:
    """The candidates, and why each other unit that is old enough stays: number to reason."""

    units: list[Candidate] = field(default_factory=list)
    spared: dict[int, str] = field(default_factory=dict)


def is_ripe(conversation: Conversation, settings: Triage) -> bool:
    """Whether the conversation goes on for long enough to be worth a judgment."""
    steps = len(conversation.steps())
    return conversation.turns >= settings.min_turns or steps > settings.protect.steps


def find_candidates(
    conversation: Conversation,
    plan: Plan | None,
    settings: Triage,
    wanted: Wanted = NOTHING,
    *,
    forced: bool = False,
) -> Found:
    """The old units that may be judged, the largest first.

    `forced` is near the window: then a client's cache mark does not protect what stands before it.
    """
    steps = conversation.steps()[-settings.protect.steps :]
    newest = steps[0].number if steps else 0
    old = [unit for unit in conversation.units if _is_old(unit, conversation, settings, newest)]
    barrier = 0 if forced else _last_mark(old)
    quotes = find_quotes(newest_text(conversation))
    around = _Around(conversation, plan, settings, wanted, quotes, barrier)
    found = Found()
    for unit in old:
        messages = read_unit(conversation, unit)
        reason = _reason_to_spare(unit, messages, around)
        if reason is None:
            found.units.append(Candidate(unit, messages))
        else:
            found.spared[unit.number] = reason
    found.units.sort(key=lambda candidate: -candidate.unit.size)
    return found


def newest_text(conversation: Conversation) -> str:
    """What the user wants now."""
    for position in range(len(conversation.facts) - 1, -1, -1):
        if conversation.facts[position].role == "user":
            return str(describe(conversation.read(position))["content"])
    return ""


@dataclass(frozen=True, slots=True)
class _Around:
    """What else decides whether a unit is spared; `barrier` is the last marked unit's number."""

    conversation: Conversation
    plan: Plan | None
    settings: Triage
    wanted: Wanted
    quotes: Sequence[str]
    barrier: int


def _is_old(unit: Unit, conversation: Conversation, settings: Triage, newest: int) -> bool:
    """Whether a unit is neither of the newest turns nor among the newest steps.

    A tool loop is one long turn, so of the newest turns, too, all but the newest steps are old.
    """
    if unit.kind != "step":
        return unit.turn <= conversation.turns - settings.protect.turns
    return unit.number < newest


def _reason_to_spare(unit: Unit, messages: Sequence[JSONObject], around: _Around) -> str | None:
    plan = around.plan
    link = unit.link.hex()
    if plan is not None and (link in plan.acts or link in plan.pending):
        return "decided"
    asked_in = plan.kept.get(link) if plan is not None else None
    recent = around.conversation.turns - around.settings.ask_again_turns
    first = unit.kind == "head" and unit.turn == 1
    checks = (
        ("incomplete", not unit.complete),
        ("kept", asked_in is not None and asked_in > recent),
        ("first", first and around.settings.protect.first),
        ("cache_control", unit.marked or unit.number <= around.barrier),
        ("recalled", any(position in around.wanted.recalled for position in unit.positions)),
        ("memory request", any(p in around.wanted.remembered for p in unit.positions)),
        ("pinned", is_pinned(messages)),
        ("quoted", is_quoted(messages, around.quotes)),
    )
    return next((reason for reason, holds in checks if holds), None)


def _last_mark(old: Sequence[Unit]) -> int:
    """The last old unit with a cache mark; marks on newer ones move along and protect nothing."""
    return max((unit.number for unit in old if unit.marked), default=0)
