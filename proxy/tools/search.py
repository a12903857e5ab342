"""The arguments of a `tool_search` call go in; the tools it loads and its answer come out."""

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

import orjson

from proxy.tools.document import Document
from proxy.tools.rank import Index
from proxy.tools.text import squash
from proxy.wire import JSON, JSONObject

MAX_QUERIES, MAX_QUERY_CHARS, MAX_LIMIT = 5, 300, 10
MAX_DESCRIPTION, MAX_NAMES, MAX_GROUPS, MAX_GUESSES = 300, 60, 20, 5
GUESSED, LEAST_LIKENESS = 2_000, 0.2
"""So many names are compared with a query that matches nothing; a guess shares so much with it."""
PATTERN_CHARS, PATTERN_SECONDS = 200, 0.05
"""A regular expression may be this long and run this long, over all tools together."""
SELECT = "select:"
_KEYS = ("queries", "query", "q", "keywords", "names", "name")
_OTHERS = ("group", "server", "limit", "top_k", "max_results")
_WRITTEN_KEY = re.compile(rf"\b(?:{'|'.join(_KEYS)})\b[\"']?\s*[:=]")
_PUNCTUATION = re.compile(r"[\[\]{}<>\"'`,;]+")

LOADED = "These tools can be called now."
REPEATED = "This search was already answered. Call a loaded tool, or answer without one."
NOTHING = "No tool matches. Do not repeat this query; try other words or a listed tool's name."
LISTED = "Call a tool by its name, or search for it to load its parameters."


@dataclass(frozen=True, slots=True)
class Query:
    """What the model asked for; `limit` is None when it named none."""

    queries: tuple[str, ...]
    group: str | None
    limit: int | None


@dataclass(frozen=True, slots=True)
class Found:
    """Tools to load, tools that were loaded before, and the content of the tool message."""

    new: tuple[str, ...]
    already: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Most results per query, most new tools, and whether the text carries whole schemas.

    `chars` bounds the schema that one search loads: large tools behind the best are only named.
    """

    per_query: int
    new: int
    schemas: bool
    chars: int | None


def parse_arguments(arguments: str) -> Query:
    """Read a call's arguments, however the model spelled them; never raises."""
    parsed = _decode(arguments)
    if isinstance(parsed, dict):
        raw = next((parsed[key] for key in _KEYS if parsed.get(key)), None)
        if raw is None and not parsed.keys() & {*_KEYS, *_OTHERS}:
            raw = list(parsed.values())
        group = next((parsed[key] for key in ("group", "server") if parsed.get(key)), None)
        return Query(_texts(raw), group.strip() if isinstance(group, str) else None, _limit(parsed))
    return Query(_texts(parsed), None, None)


def _decode(arguments: str) -> JSON:
    """Decode JSON, also when it is encoded twice, cut short, wrapped in text or no JSON at all."""
    text = arguments.strip()
    for candidate in _candidates(text):
        try:
            parsed: JSON = orjson.loads(candidate)
        except orjson.JSONDecodeError:
            continue
        if isinstance(parsed, str) and parsed.lstrip().startswith(("{", "[")):
            return _decode(parsed)
        return parsed
    if text.startswith((SELECT, "/")):
        return text
    words = " ".join(_PUNCTUATION.sub(" ", _WRITTEN_KEY.sub(" ", text)).split())
    return words if any(map(str.isalnum, words)) else None


def _candidates(text: str) -> Iterator[str]:
    """What a model may have meant to write, the likeliest first."""
    yield from (text, f'{text}"]}}', f"{text}]}}", f"{text}}}")
    for opening, closing in ("{}", "[]"):
        start, end = text.find(opening), text.rfind(closing)
        if 0 <= start < end:
            yield text[start : end + 1]


def _texts(raw: JSON) -> tuple[str, ...]:
    values = raw if isinstance(raw, list) else [raw]
    values = [_inner(value) if isinstance(value, dict) else value for value in values]
    texts = (value.strip()[:MAX_QUERY_CHARS] for value in values if isinstance(value, str))
    return tuple(dict.fromkeys(text for text in texts if text))[:MAX_QUERIES]


def _inner(value: JSONObject) -> JSON:
    """The query in an object where a text was asked for."""
    return next((value[key] for key in _KEYS if value.get(key)), None)


def _limit(parsed: JSONObject) -> int | None:
    value = next((parsed[key] for key in ("limit", "top_k", "max_results") if key in parsed), None)
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value.strip()[:9])
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return min(max(value, 1), MAX_LIMIT)


def search(  # noqa: PLR0913 – the seam's signature: one call site, keyword-only
    index: Index,
    query: Query,
    *,
    loaded: Container[str],
    asked: set[str],
    limit: int,
    max_new: int,
    schemas: bool,
    max_chars: int | None = None,
) -> Found:
    """Answer a search; queries already in `asked` load nothing again."""
    chosen = all(text.startswith(SELECT) for text in query.queries)
    limits = Limits(query.limit or limit, max_new, schemas, None if chosen else max_chars)
    if not query.queries:
        return _list_group(index.documents, query.group, loaded)
    fresh = [text for text in query.queries if _normalise(text, query.group) not in asked]
    asked.update(_normalise(text, query.group) for text in query.queries)
    positions = list(dict.fromkeys(_positions(index, query, limits, fresh or query.queries)))
    if not positions and fresh:
        return _answer_nothing(index.documents, " ".join(fresh))
    return _answer(index.documents, positions, loaded, limits, repeated=not fresh)


def _normalise(text: str, group: str | None) -> str:
    return f"{group or ''}\n{' '.join(sorted(text.casefold().split()))}"


def _positions(index: Index, query: Query, limits: Limits, texts: Sequence[str]) -> Iterator[int]:
    """Matches of all queries, interleaved so that none of them is cut off by another."""
    members = _members(index.documents, query.group)
    columns = [_matches(index, text, limits.per_query, members) for text in texts]
    for rank in range(max(map(len, columns), default=0)):
        yield from (column[rank] for column in columns if rank < len(column))


def _matches(index: Index, text: str, limit: int, members: frozenset[int] | None) -> list[int]:
    if text.startswith(SELECT):
        named = _by_name(index.documents, text.removeprefix(SELECT).split(","))
        return [position for position in named if members is None or position in members]
    if len(text) > 2 and text[0] == text[-1] == "/":
        found = _by_pattern(index.documents, text[1:-1])
    elif members is None:
        found = [hit.position for hit in index.rank(text, limit)]
    else:
        found = [hit.position for hit in index.rank(text, len(index.documents))]
    return [position for position in found if members is None or position in members][:limit]


def _members(documents: Sequence[Document], group: str | None) -> frozenset[int] | None:
    """Positions of a group; None, meaning everywhere, when there is no such group."""
    wanted = squash(group or "")
    if not wanted:
        return None
    found = [p for p, tool in enumerate(documents) if squash(tool.group) == wanted]
    if not found:  # the listing may show a longer beginning than the group's
        found = [p for p, tool in enumerate(documents) if squash(tool.name).startswith(wanted)]
    return frozenset(found) or None


def _by_name(documents: Sequence[Document], names: Sequence[str]) -> list[int]:
    known = {squash(tool.name): position for position, tool in reversed(list(enumerate(documents)))}
    return [known[squash(name)] for name in names if squash(name) in known]


def _by_pattern(documents: Sequence[Document], pattern: str) -> list[int]:
    """Tools whose name, else description, matches; a bad or slow pattern finds nothing."""
    import regex  # type: ignore[import-untyped] # noqa: PLC0415  # no types; a hundredth of a start

    try:
        compiled = regex.compile(pattern[:PATTERN_CHARS], regex.IGNORECASE | regex.MULTILINE)
        text = "\n".join(f"{tool.name} {_brief(tool)}" for tool in documents)
        lines = [match.start() for match in compiled.finditer(text, timeout=PATTERN_SECONDS)]
    except (regex.error, TimeoutError):
        return []
    return list(dict.fromkeys(text.count("\n", 0, start) for start in lines))


def _answer(
    documents: Sequence[Document],
    positions: Sequence[int],
    loaded: Container[str],
    limits: Limits,
    *,
    repeated: bool,
) -> Found:
    names = [documents[position].name for position in positions]
    already = tuple(name for name in names if name in loaded)
    fresh = [documents[p] for p in positions if documents[p].name not in loaded]
    new = [] if repeated else list(_affordable(fresh[: limits.new], limits.chars))
    body: JSONObject = {"loaded": [_entry(tool, schemas=limits.schemas) for tool in new]}
    others = [] if repeated else [tool.name for tool in fresh if tool not in new]
    if others:
        body["not_loaded"] = others[:MAX_NAMES]
    if already:
        body["already_loaded"] = list(already)
    if repeated:
        body["note"] = REPEATED
    else:
        body["note"] = LOADED
    return Found(tuple(tool.name for tool in new), already, _dump(body))


def _answer_nothing(documents: Sequence[Document], text: str) -> Found:
    """Where to look instead: names spelled like the query, and the groups that there are."""
    body: JSONObject = {"loaded": []}
    asked = _trigrams(text)
    likeness = [(_share(asked, tool.name), tool.name) for tool in documents[:GUESSED]]
    alike = sorted((one for one in likeness if one[0] >= LEAST_LIKENESS), key=lambda one: -one[0])
    if alike:
        body["similar"] = [name for _, name in alike[:MAX_GUESSES]]
    groups = _groups(documents)
    if groups:
        body["groups"] = groups[:MAX_GROUPS]
    return Found((), (), _dump({**body, "note": NOTHING}))


def _trigrams(text: str) -> frozenset[str]:
    plain = squash(text[:MAX_QUERY_CHARS])
    return frozenset(plain[at : at + 3] for at in range(len(plain) - 2))


def _share(asked: frozenset[str], name: str) -> float:
    own = _trigrams(name)
    return len(own & asked) / len(own | asked) if own and asked else 0.0


def _groups(documents: Sequence[Document]) -> list[str]:
    return list(dict.fromkeys(tool.group for tool in documents if tool.group))


def _affordable(documents: Sequence[Document], chars: int | None) -> Iterator[Document]:
    """The best tool, and those behind it as far as their schemas fit together."""
    spent = 0
    for number, tool in enumerate(documents):
        spent += len(tool.parameters or b"") + len(tool.description)
        if number == 0 or chars is None or spent <= chars:
            yield tool


def _entry(tool: Document, *, schemas: bool) -> JSONObject:
    entry: JSONObject = {
        "name": tool.name,
        "description": _brief(tool),
    }
    if schemas:
        entry["parameters"] = orjson.Fragment(tool.parameters or b"{}")
    return entry


def _brief(tool: Document) -> str:
    return " ".join(tool.description.split())[:MAX_DESCRIPTION]


def _list_group(documents: Sequence[Document], group: str | None, loaded: Container[str]) -> Found:
    """Without a query: the names of the group, or of the groups; nothing is loaded."""
    members = _members(documents, group)
    if members is None:
        groups = _groups(documents)[:MAX_NAMES]
        return Found((), (), _dump({"loaded": [], "groups": groups, "note": LISTED}))
    names = [documents[position].name for position in sorted(members)]
    already = tuple(name for name in names if name in loaded)
    return Found((), already, _dump({"loaded": [], "names": names[:MAX_NAMES], "note": LISTED}))


def _dump(body: JSONObject) -> str:
    return orjson.dumps(body).decode()
