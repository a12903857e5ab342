"""A catalogue comes in; which tools stay whole and which become stubs, and why, goes out."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from proxy.settings import Deferral
from proxy.tools.catalog import VALID_NAME, Catalogue, Tool

AMBIENT = re.compile(
    r"(^|[_-])ask[_-]?(the[_-])?(user|human)|(user|human)[_-]input|^transfer[_-]to|hand[_-]?off"
    r"|final[_-]?answer",
    re.IGNORECASE,
)
"""Tools that a model must see to think of: asking the user fell from 18 of 18 to 7 of 18 uses when
it was deferred (NousResearch/hermes-agent, see research)."""


@dataclass(frozen=True, slots=True)
class Split:
    """Which tools of a catalogue may be deferred; `reasons` says why each of the others stays."""

    eager: tuple[Tool, ...]
    deferrable: tuple[Tool, ...]
    reasons: Mapping[str, str]


def is_worthwhile(catalogue: Catalogue, settings: Deferral) -> bool:
    """Whether the catalogue is large enough for deferral to pay."""
    return len(catalogue.tools) >= settings.min_tools or catalogue.chars >= settings.min_chars


def split_tools(catalogue: Catalogue, settings: Deferral) -> Split:
    """The part of the decision that depends on the tools and the settings alone.

    It is the same for every turn of a conversation, so the listing made from it is too.
    """
    eager: list[Tool] = []
    deferrable: list[Tool] = []
    reasons: dict[str, str] = {}
    budget = settings.eager_chars
    for tool in catalogue.tools:
        if tool.position in catalogue.repeated:
            continue
        reason = _reason_to_stay(tool, catalogue, settings)
        if reason is None and _is_small(tool, settings) and len(tool.raw) <= budget:
            budget -= len(tool.raw)
            reason = "small"
        if reason is None:
            deferrable.append(tool)
        else:
            eager.append(tool)
            reasons[tool.name] = reason
    return Split(tuple(eager), tuple(deferrable), reasons)


def find_mentions(text: str, tools: Iterable[Tool]) -> list[str]:
    """The tools whose whole name occurs in a text: prompts tell the model to call them."""
    present = [tool.name for tool in tools if tool.name in text]
    return [name for name in present if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a name equals one of the names or fits one of the globs."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def render_tools(
    eager: Iterable[Tool], injected: Sequence[bytes], surfaced: Iterable[Tool]
) -> bytes:
    """The `tools` array for the upstream: eager in client order, ours, surfaced in their order."""
    parts = [tool.raw for tool in eager]
    parts.extend(injected)
    parts.extend(tool.raw for tool in surfaced)
    return b"[" + b",".join(parts) + b"]"


def cap_surfaced(names: Sequence[str], called: Container[str], limit: int) -> list[str]:
    """The surfaced names when there are more than `limit`.

    Half of the limit leaves in one go, oldest and never called first, so that the prefix changes
    once and then stays for many turns.
    """
    kept = list(names)
    while len(kept) > limit:
        idle = [name for name in kept if name not in called][: max(1, limit // 2)]
        if not idle:
            return kept
        kept = [name for name in kept if name not in set(idle)]
    return kept


def _reason_to_stay(tool: Tool, catalogue: Catalogue, settings: Deferral) -> str | None:
    checks = (
        ("kind", tool.kind != "function"),
        ("conflict", tool.name in catalogue.conflicting),
        ("name", VALID_NAME.fullmatch(tool.name) is None),
        ("pinned", matches(tool.name, settings.pin)),
        ("client", tool.defer_loading is False),
        ("cache_control", tool.breakpoint),
        ("ambient", tool.defer_loading is None and AMBIENT.search(tool.name) is not None),
    )
    return next((reason for reason, holds in checks if holds), None)


def _is_small(tool: Tool, settings: Deferral) -> bool:
    if tool.defer_loading or matches(tool.name, settings.defer):
        return False
    return len(tool.raw) < settings.small_chars
