"""A toolbox, a history and the client's choice come in; the tools of the first round go out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from proxy.tools.catalog import Tool
from proxy.tools.choice import Choice
from proxy.tools.defer import cap_surfaced, matches, render_tools
from proxy.tools.delivery import Delivery
from proxy.tools.history import Asked, History, Surfaced, fold_surfaced
from proxy.tools.listing import mark_breakpoint
from proxy.tools.toolbox import Toolbox

Predict = Callable[[Asked], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the client and the operator want of this request's tools.

    `breakpoint` asks for a mark on the search tool up to which the provider caches.
    """

    choice: Choice
    keep: tuple[str, ...] = ()
    delivery: Delivery = "append"
    max_surfaced: int = 64
    eager_chars: int = 4_000
    breakpoint: bool = False


@dataclass(slots=True)
class Arrangement:
    """The tools of one turn.

    `eager` stay in client order, `pool` are the tools that may still be loaded, `surfaced` those
    that are. `search_raw` is the search tool, None when this turn may not search. `bridge_raw` is
    the call bridge when schemas are delivered in results, in which case surfaced tools are not
    declared. `reasons` says why each eager tool is there.
    """

    eager: tuple[Tool, ...]
    pool: Mapping[str, Tool]
    surfaced: Surfaced
    search_raw: bytes | None
    bridge_raw: bytes | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def frozen(self) -> bool:
        """Whether schemas are delivered in results."""
        return self.bridge_raw is not None

    def declared(self) -> set[str]:
        """The names of the client's tools in the upstream's `tools`."""
        eager = {tool.name for tool in self.eager}
        return eager if self.frozen else eager | set(self.surfaced.names)

    def loaded(self) -> set[str]:
        """The names of the client's tools whose schemas the model has seen."""
        return {tool.name for tool in self.eager} | set(self.surfaced.names)

    def render(self, *, search: bool) -> bytes:
        """The `tools` array: eager tools, ours, and loaded ones in first-surfaced order."""
        injected = [self.search_raw] if search and self.search_raw else []
        if self.bridge_raw is not None:
            return render_tools(self.eager, [*injected, self.bridge_raw], ())
        return render_tools(self.eager, injected, (self.pool[n] for n in self.surfaced.names))


def arrange(
    toolbox: Toolbox,
    history: History,
    wishes: Wishes,
    predict: Predict,
    discovered: Mapping[int, Sequence[str]],
) -> Arrangement:
    """The arrangement for a conversation.

    It depends on the toolbox, the history and what is stored of it only, so a longer history of
    the same conversation yields the same tools first.
    """
    choice = wishes.choice
    reasons = _reasons_to_keep(toolbox, history, wishes)
    kept = [toolbox.deferrable[name] for name in reasons]
    pool = toolbox.deferrable
    if reasons or choice.kind == "allowed":
        pool = {n: t for n, t in pool.items() if n not in reasons and choice.permits(n)}
    if choice.kind == "allowed" and _chars(pool.values()) <= wishes.eager_chars:
        kept.extend(pool.values())
        reasons.update(dict.fromkeys(pool, "allowed"))
        pool = {}
    searching = bool(pool) and _may_search(choice, toolbox)
    surfaced = fold_surfaced(history, predict if searching else _nothing, pool, discovered)
    frozen = searching and wishes.delivery == "frozen" and choice.kind in ("auto", "required")
    if not frozen:
        surfaced.names = cap_surfaced(surfaced.names, history.called, wishes.max_surfaced)
    return Arrangement(
        eager=tuple(sorted((*toolbox.split.eager, *kept), key=lambda tool: tool.position)),
        pool=pool,
        surfaced=surfaced,
        search_raw=_search_raw(toolbox, wishes, pool) if searching else None,
        bridge_raw=toolbox.bridge_raw if frozen else None,
        reasons={**toolbox.split.reasons, **reasons},
    )


def _reasons_to_keep(toolbox: Toolbox, history: History, wishes: Wishes) -> dict[str, str]:
    """Which deferrable tools this request wants whole."""
    reasons = dict.fromkeys(toolbox.mentions(history.system), "system prompt")
    if wishes.keep:
        kept = (name for name in toolbox.deferrable if matches(name, wishes.keep))
        reasons.update(dict.fromkeys(kept, "kept"))
    if wishes.choice.kind == "named":
        named = (name for name in wishes.choice.names if name in toolbox.deferrable)
        reasons.update(dict.fromkeys(named, "tool_choice"))
    return reasons


def _may_search(choice: Choice, toolbox: Toolbox) -> bool:
    """Whether a choice leaves room for a search; it may also name the search tool itself."""
    if choice.kind == "named":
        return toolbox.search_name in choice.names
    return choice.kind != "none"


def _search_raw(toolbox: Toolbox, wishes: Wishes, pool: Mapping[str, Tool]) -> bytes:
    """The search tool, with a listing of its own where few tools may be called."""
    bounded = wishes.choice.kind == "allowed"
    raw = toolbox.render_search(pool.values()) if bounded else toolbox.search_raw
    return mark_breakpoint(raw) if wishes.breakpoint else raw


def _chars(tools: Iterable[Tool]) -> int:
    return sum(len(tool.raw) for tool in tools)


def _nothing(_: Asked) -> Sequence[str]:
    return ()
