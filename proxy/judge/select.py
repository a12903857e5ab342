"""A verdict about tools in; the tools to ship, and why, out.

A judge only ever adds: tools that the user names stay whatever it says, and everything it passes
over is still listed and one search away.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from proxy.judge.fused import NEEDS_TOOL, TOOL, fits_name, is_fits
from proxy.judge.verdict import Verdict
from proxy.judge_settings import ToolSelection

Reason = Literal["no_tool_needed", "judged", "widened", "ranker"]


class Offer(msgspec.Struct, frozen=True):
    """What the judge saw, what the user names, and our ranker's shortlist for the unmeasured."""

    tools: Collection[str]
    named: Sequence[str]
    ranked: Sequence[str]


class Selected(msgspec.Struct, frozen=True):
    """The chosen tools, the named ones in front, then best first; the rest is for the record."""

    names: tuple[str, ...]
    named: tuple[str, ...]
    reason: Reason
    needs_tool: float | None = None
    confidence: float | None = None
    probabilities: Mapping[str, float] | None = None


def measured(verdict: Verdict) -> bool:
    """Whether a judge from outside said anything about tools, whatever else it left open."""
    names = [name for name in verdict.answers if name in {NEEDS_TOOL, TOOL} or is_fits(name)]
    return any(verdict.calibration(name) not in {"embedded", "none"} for name in names)


def select_tools(verdict: Verdict, offer: Offer, settings: ToolSelection) -> Selected:
    """Apply the selection rule."""
    first = tuple(offer.named[: settings.shortlist]) if settings.surface_named else ()
    needs = verdict.noul(NEEDS_TOOL)
    if needs is not None and needs < _needs_below(verdict, settings):
        return Selected(first, first, "no_tool_needed", needs)
    if settings.mode == "per_tool":
        return _select_fitting(verdict, offer, first, settings)
    answer = verdict.choice(TOOL)
    if answer is None or answer.calibration == "embedded":
        return Selected(_join(first, offer.ranked), first, "ranker", needs)
    unsure = answer.confidence is None or answer.confidence <= settings.low_confidence_below
    most = settings.shortlist + (settings.low_confidence_extra if unsure else 0)
    if answer.probabilities:
        chosen = _best(answer.probabilities, offer, first, settings.min_probability)
    else:  # a label without a probability is no certainty: it leads the ranker's shortlist
        chosen = _join([answer.label] if answer.label in offer.tools else [], offer.ranked)
    return Selected(
        _join(first, chosen[:most]),
        first,
        "widened" if unsure else "judged",
        needs,
        answer.confidence,
        answer.probabilities,
    )


def _needs_below(verdict: Verdict, settings: ToolSelection) -> float:
    """The operator's own threshold, else a calibrated one, else the usual one."""
    usual = settings.needs_tool_below
    chosen = "needs_tool_below" in settings.model_fields_set
    return usual if chosen else verdict.thresholds.get(NEEDS_TOOL, usual)


def _select_fitting(
    verdict: Verdict, offer: Offer, first: tuple[str, ...], settings: ToolSelection
) -> Selected:
    """Every tool was judged by itself: those that fit, best first."""
    measured = {tool: verdict.noul(fits_name(tool)) for tool in offer.tools}
    fits = {tool: p for tool, p in measured.items() if p is not None}
    needs = verdict.noul(NEEDS_TOOL)
    if not fits:
        return Selected(_join(first, offer.ranked), first, "ranker", needs)
    chosen = _best(fits, offer, first, settings.min_probability)[: settings.shortlist]
    return Selected(_join(first, chosen), first, "judged", needs, None, fits)


def _best(
    probabilities: Mapping[str, float], offer: Offer, without: Sequence[str], least: float
) -> tuple[str, ...]:
    """Offered tools by probability, without those that are chosen anyway."""
    likely = [name for name, probability in probabilities.items() if probability >= least]
    return tuple(
        name
        for name in sorted(likely, key=probabilities.__getitem__, reverse=True)
        if name in offer.tools and name not in without
    )


def _join(*parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in parts for name in part))
