"""A turn's hidden messages and the calls that followed go in; searches that led to one come out."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import orjson

from proxy.tools.rank import Index
from proxy.tools.search import SELECT, parse_arguments
from proxy.wire import JSONObject


@dataclass(frozen=True, slots=True)
class Searched:
    """A search in the model's own words, and the names that its answer showed."""

    queries: tuple[str, ...]
    shown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """A query whose search ended in the call of `tool`; `others` were shown beside it."""

    query: str
    tool: str
    others: tuple[str, ...]


def find_uses(
    hidden: Iterable[JSONObject], search_name: str, called: Iterable[str], index: Index
) -> list[Use]:
    """The searches that showed a called tool, by the query that fits it best; one per tool."""
    searches = list(read_searches(hidden, search_name))
    uses = []
    for tool in dict.fromkeys(called):
        first = next((search for search in searches if tool in search.shown), None)
        if first is not None:
            others = tuple(name for name in first.shown if name != tool)
            uses.append(Use(_best_query(index, first.queries, tool), tool, others))
    return uses


def read_searches(hidden: Iterable[JSONObject], search_name: str) -> Iterator[Searched]:
    """The searches of messages that the client never saw; names and patterns teach nothing."""
    asked: dict[str, tuple[str, ...]] = {}
    for message in hidden:
        for call in message.get("tool_calls") or ():
            function = call.get("function")
            if function and function["name"] == search_name:
                queries = parse_arguments(function["arguments"]).queries
                asked[call["id"]] = tuple(query for query in queries if _in_words(query))
        queries = asked.pop(str(message.get("tool_call_id")), ())
        if queries and message["content"]:
            yield Searched(queries, _read_shown(message["content"]))


def _in_words(query: str) -> bool:
    return not query.startswith((SELECT, "/"))


def _read_shown(content: str) -> tuple[str, ...]:
    """The names in a search's answer, loaded ones first."""
    answer: JSONObject = orjson.loads(content)
    loaded = (entry["name"] for entry in answer["loaded"])
    return (*loaded, *answer.get("already_loaded", ()))


def _best_query(index: Index, queries: Sequence[str], tool: str) -> str:
    """Of several queries of one search the one that ranks the tool highest."""
    if len(queries) == 1:
        return queries[0]
    documents = index.documents

    def place(query: str) -> int:
        names = [documents[hit.position].name for hit in index.rank(query, len(documents))]
        return names.index(tool) if tool in names else len(names)

    return min(queries, key=place)
