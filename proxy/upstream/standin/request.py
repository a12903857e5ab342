"""The body of a chat request goes in; what the stand-in model needs to know of it comes out."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson

from proxy.tools.choice import Choice, read_choice
from proxy.upstream.standin.match import Offer
from proxy.wire import JSON, JSONObject

_SEARCH_NAME = re.compile(r"(?:tool_search|find_tools|search_tools)(?:_\w+)?")
_BRIDGE_NAME = re.compile(r"call_tool(?:_\w+)?")
_LISTED = re.compile(r"([\w./-]+)(?:\([^)]*\))?")


@dataclass(frozen=True, slots=True)
class History:
    """What happened since the newest user message: real calls, their results, a search since."""

    text: str
    called: tuple[str, ...]
    results: tuple[tuple[str, str], ...]
    searched: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the model reads it."""

    history: History
    offers: tuple[Offer, ...]
    search: Offer | None
    bridge: Offer | None
    """`call_tool`, through which found tools are called when they are not declared."""
    listed: tuple[str, ...]
    choice: Choice
    parallel: bool
    schema: JSONObject | None
    """Of the JSON that the answer has to be; `{}` when any object will do."""


def read_request(body: JSONObject) -> Asked:
    """Read a request that was found valid."""
    choice = read_choice(body.get("tool_choice"))
    declared = [offer for offer in _read_offers(body.get("tools")) if choice.permits(offer.name)]
    search = next((offer for offer in declared if _is_search(offer)), None)
    bridge = next((offer for offer in declared if search and _is_bridge(offer)), None)
    offers = [offer for offer in declared if offer not in (search, bridge)]
    if bridge:
        offers += _offers_in_results(body["messages"], {offer.name for offer in offers})
    return Asked(
        history=_read_history(body["messages"]),
        offers=tuple(offers),
        search=search,
        bridge=bridge,
        listed=tuple(read_listing(search.description)) if search else (),
        choice=choice,
        parallel=body.get("parallel_tool_calls") is not False,
        schema=_read_format(body.get("response_format")),
    )


def text_of(content: JSON) -> str:
    """The text of a message's content, whether it is a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(
        p["text"] for p in parts if isinstance(p, dict) and isinstance(p.get("text"), str)
    )


def _read_offers(tools: JSON) -> Iterator[Offer]:
    for tool in tools if isinstance(tools, list) else ():
        function = tool.get("function") if isinstance(tool, dict) else None
        if isinstance(function, dict):
            schema = function.get("parameters")
            yield Offer(
                function["name"],
                str(function.get("description") or ""),
                schema if isinstance(schema, dict) else {},
            )


def _is_search(offer: Offer) -> bool:
    return bool(_SEARCH_NAME.fullmatch(offer.name)) or offer.schema.get("required") == ["queries"]


def _is_bridge(offer: Offer) -> bool:
    properties = offer.schema.get("properties") or {}
    return bool(_BRIDGE_NAME.fullmatch(offer.name)) and {"name", "arguments"} <= properties.keys()


def read_listing(description: str) -> Iterator[str]:
    """The names in lines such as `storage_*: blob_get(account), table_list`."""
    for line in description.splitlines():
        head, colon, items = line.partition(": ")
        if colon and " " not in head:
            pattern = head if "*" in head else "*"
            yield from (pattern.replace("*", name) for name in _LISTED.findall(items))


def _read_history(messages: Sequence[JSONObject]) -> History:
    newest = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=-1)
    names: dict[str, str] = {}
    called: list[str] = []
    results: list[tuple[str, str]] = []
    searched = False
    for message in messages[newest + 1 :]:
        for call_id, name in _calls_of(message):
            names[call_id] = name
            if not _SEARCH_NAME.fullmatch(name):
                called.append(name)
        if message["role"] == "tool":
            name = names.get(message.get("tool_call_id", ""), "tool")
            searched = bool(_SEARCH_NAME.fullmatch(name))
            if not searched:
                results.append((name, text_of(message.get("content"))))
    text = text_of(messages[newest].get("content")) if newest >= 0 else ""
    return History(text, tuple(called), tuple(results), searched)


def _calls_of(message: JSONObject) -> Iterator[tuple[str, str]]:
    """Ids and names of a message's calls; a call through the bridge counts as the tool's own."""
    for call in message.get("tool_calls") or ():
        inner = call.get(call.get("type") or "function") or {}
        name = inner.get("name", "")
        if _BRIDGE_NAME.fullmatch(name):
            name = _decode(inner.get("arguments")).get("name", name)
        yield call.get("id", ""), name


def _offers_in_results(messages: Sequence[JSONObject], known: set[str]) -> Iterator[Offer]:
    """Tools whose schemas a search put into its result instead of declaring them."""
    for message in messages:
        found = _decode(text_of(message.get("content"))) if message["role"] == "tool" else {}
        loaded = found.get("loaded")
        for entry in loaded if isinstance(loaded, list) else ():
            if isinstance(entry.get("parameters"), dict) and entry.get("name") not in known:
                known.add(entry["name"])
                yield Offer(entry["name"], entry.get("description", ""), entry["parameters"])


def _decode(text: JSON) -> JSONObject:
    try:
        found = orjson.loads(text) if isinstance(text, str) else {}
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _read_format(value: JSON) -> JSONObject | None:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "json_object":
        return {}
    if kind == "json_schema":
        schema = value["json_schema"].get("schema")
        return schema if isinstance(schema, dict) else {}
    return None
