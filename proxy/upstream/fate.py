"""A tool call of the model comes in; whose it is, and what the model hears of it, goes out."""

from dataclasses import dataclass, replace
from enum import Enum

import orjson

from proxy.stream.collect import Call
from proxy.tools.bridge import read_bridge_call
from proxy.tools.validate import nearest_names
from proxy.upstream.brief import Brief
from proxy.wire import JSONObject


class Fate(Enum):
    """What becomes of one tool call."""

    REAL = "real"
    SEARCH = "search"
    REPAIR = "repair"
    RECALL = "recall"
    SWALLOW = "swallow"


@dataclass(frozen=True, slots=True)
class Ruling:
    """The fate of a call; `call` as the client would get it, `reply` as the model would.

    `tool` is the tool of the catalogue that a repair is about, if there is one.
    """

    fate: Fate
    call: Call
    reply: str = ""
    tool: str | None = None


class Fates:
    """Rules on the calls of one turn and counts its repairs."""

    def __init__(self, brief: Brief) -> None:
        self._brief = brief
        self._repairs: dict[str, int] = {}

    def rule(self, call: Call, *, closing: bool) -> Ruling:
        """The fate of one call; `closing` says that no search is answered any more."""
        brief = self._brief
        if brief.recall is not None and call.name == brief.recall.name:
            if closing:
                return Ruling(Fate.SWALLOW, call)
            return Ruling(Fate.RECALL, call, brief.recall.answer(call.arguments))
        if call.name == brief.toolbox.search_name:
            if brief.arrangement.search_raw is None or closing:
                return Ruling(Fate.SWALLOW, call)
            return Ruling(Fate.SEARCH, call)
        meant = call
        if brief.arrangement.frozen and call.name == brief.toolbox.bridge_name:
            name, arguments = read_bridge_call(call.arguments)
            meant = replace(call, name=name, arguments=arguments)
        if meant.name in brief.arrangement.declared():
            return Ruling(Fate.REAL, meant)
        return self._rule_unloaded(call, meant)

    def _rule_unloaded(self, sent: Call, call: Call) -> Ruling:
        """A call of a tool that is not declared; `sent` is how the model wrote it."""
        brief = self._brief
        name = call.name if call.name in brief.arrangement.pool else self._guess_name(call)
        if name is None:
            return self._repair(sent, call.name, {"error": f"there is no tool {call.name!r}"})
        checked = brief.toolbox.checker(name).check(call.arguments)
        if checked.error is None:
            return Ruling(Fate.REAL, replace(call, name=name, arguments=checked.arguments))
        complaint: JSONObject = {"error": checked.error, "path": checked.path}
        parameters = brief.toolbox.catalogue.by_name[name].parameters
        if parameters is not None:
            complaint["parameters"] = orjson.Fragment(parameters)
        return self._repair(sent, name, complaint)

    def _guess_name(self, call: Call) -> str | None:
        """The one tool that a mistaken name can only mean, provided the arguments fit it."""
        names = nearest_names(call.name, list(self._brief.arrangement.pool))
        if len(names) != 1:
            return None
        fits = self._brief.toolbox.checker(names[0]).check(call.arguments).error is None
        return names[0] if fits else None

    def _repair(self, call: Call, name: str, complaint: JSONObject) -> Ruling:
        """One more chance for the model; after `max_repairs` the client's own check decides."""
        count = self._repairs.get(name, 0)
        if count >= self._brief.settings.max_repairs:
            return Ruling(Fate.REAL, self._unbridged(call))
        self._repairs[name] = count + 1
        if name not in self._brief.arrangement.pool:
            similar = nearest_names(name, list(self._brief.arrangement.pool))
            complaint["note"] = f"Search with {self._brief.toolbox.search_name}, or answer without."
            if similar:
                complaint["similar"] = similar
        tool = name if name in self._brief.arrangement.pool else None
        return Ruling(Fate.REPAIR, call, orjson.dumps(complaint).decode(), tool)

    def _unbridged(self, call: Call) -> Call:
        """The call that the client gets of one that went through the bridge."""
        if not self._brief.arrangement.frozen or call.name != self._brief.toolbox.bridge_name:
            return call
        name, arguments = read_bridge_call(call.arguments)
        return replace(call, name=name or call.name, arguments=arguments)
