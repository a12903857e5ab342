"""A person's questions about their own memories come in over HTTP; JSON goes out.

Who asks is found out as in a turn, by key or header. An admin key may name a tenant and a user.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from urllib.parse import parse_qsl

import orjson
from starlette.routing import BaseRoute, Route

from proxy.edge.admin import ALL_TENANTS
from proxy.edge.asked import Asked
from proxy.edge.endpoint import Endpoint
from proxy.edge.exchange import Edge
from proxy.errors import BadRequest, NotFound, UsherError
from proxy.ledger.store import Ledger
from proxy.memory.change import Change, Delete, Origin, Outcome, Rename, Store
from proxy.memory.near import Remembered
from proxy.memory.principal import Absent, Claim, Principal, identify
from proxy.memory.value import Refused, check_key, check_value
from proxy.plan.exchange import Reply
from proxy.plan.policy import read_policy
from proxy.settings import Settings
from proxy.tools.tokens import count_tokens
from proxy.wire import JSON, JSONObject

Answer = Callable[[Asked, Principal], Awaitable[Reply]]

_QUOTED = re.compile(r'(?:W/)?"?(\d+)"?')
_MOST_EVENTS = 500
_MOST_IMPORTED = 1_000


class Conflict(UsherError):
    """Somebody else has changed it, or the name is taken."""

    status = 409
    type = "invalid_request_error"
    code = "conflict"


class Stale(Conflict):
    """The revision of If-Match is not the one that is stored."""

    status = 412
    code = "precondition_failed"


class NoMemory(NotFound):
    """Nothing is stored under a key."""

    code = "memory_not_found"


class NoTurn(NotFound):
    """No request of that id, or none of this person's."""

    code = "request_not_found"


class NothingWaits(NotFound):
    """No event of that number waits for the person's word."""

    code = "nothing_to_confirm"


class MemoryApi:
    """The answers; each sees the memories of one person only."""

    def __init__(self, remembered: Remembered, settings: Settings, ledger: Ledger) -> None:
        self._ledger = ledger
        self._bank = remembered.bank
        self._recent = remembered.service.recent
        self._settings = settings.memory
        self._all = settings

    def person(self, asked: Asked) -> Principal:
        """Whose memories. Raises BadRequest when the request doesn't say."""
        grant = asked.caller.grant
        named = read_policy(self._all, asked.headers, None).user_id
        user = named if grant is None else grant.speaks_for(named)
        policy = read_policy(self._all, asked.headers, None)
        if asked.caller.admin and asked.caller.tenant == ALL_TENANTS:
            query = dict(parse_qsl(asked.query))
            if not query.get("tenant") or not query.get("user"):
                raise BadRequest("With this key, name a tenant and a user.", param="user")
            return Principal(query["tenant"], query["user"], query.get("scope", ""))
        found = identify(
            Claim(asked.caller, asked.headers, user, policy.app, None, policy.project),
            self._settings,
        )
        if isinstance(found, Absent):
            raise BadRequest(f"Whose memories? ({found.reason})", param="x-usher-user-id")
        return found

    async def list(self, asked: Asked, whose: Principal) -> Reply:  # noqa: ARG002 - an Answer
        """All memories, and how much room is left."""
        snapshot = await self._bank.read(whose)
        limit = self._bank.token_limit
        return reply_json(
            {
                "memories": [memory.as_json() for memory in snapshot.memories],
                "total_tokens": snapshot.tokens,
                "token_limit": limit,
                "usage_percentage": round(100 * snapshot.tokens / limit),
            }
        )

    async def put(self, asked: Asked, whose: Principal) -> Reply:
        """Store a value; only by its owner, so it needs no evidence, but secrets stay out."""
        value = read_body(asked).get("value")
        if not isinstance(value, str):
            raise BadRequest("value: a text is missing.", param="value")
        change = self._store(asked.params["key"], value, read_match(asked))
        return self._answer(await self._one(asked, whose, change))

    async def delete(self, asked: Asked, whose: Principal) -> Reply:
        """Delete one."""
        key = fit(lambda: check_key(asked.params["key"], ()))
        return self._answer(await self._one(asked, whose, Delete(key, read_match(asked))))

    async def rename(self, asked: Asked, whose: Principal) -> Reply:
        """Another key for the same value, in one step."""
        wanted = read_body(asked).get("key")
        if not isinstance(wanted, str):
            raise BadRequest("key: the new key is missing.", param="key")
        new = fit(lambda: check_key(wanted, self._settings.valid_keys))
        old = fit(lambda: check_key(asked.params["key"], ()))
        return self._answer(await self._one(asked, whose, Rename(old, new, read_match(asked))))

    async def forget(self, asked: Asked, whose: Principal) -> Reply:
        """Everything, for good; `confirm=everything` says that it's meant."""
        if dict(parse_qsl(asked.query)).get("confirm") != "everything":
            raise BadRequest("Add ?confirm=everything to delete all memories.", param="confirm")
        return reply_json({"deleted": await self._bank.forget(whose, Origin(asked.request_id))})

    async def export(self, asked: Asked, whose: Principal) -> Reply:  # noqa: ARG002 - an Answer
        """One JSON object a line, as `import` takes them."""
        snapshot = await self._bank.read(whose)
        lines = b"".join(orjson.dumps(memory.as_json()) + b"\n" for memory in snapshot.memories)
        return Reply(200, [(b"content-type", b"application/jsonl"), *_PRIVATE], lines)

    async def take(self, asked: Asked, whose: Principal) -> Reply:
        """Store exported lines, all or, if one is wrong or one too much, none."""
        changes = [self._store(key, value) for key, value in read_lines(asked.body)]
        origin = Origin(asked.request_id, op="import")
        outcomes = await self._bank.change(whose, changes, origin, whole=True)
        for outcome in outcomes:
            if outcome.kind == "error":
                return self._answer(outcome)
        return reply_json({"outcomes": [outcome.as_artifact() for outcome in outcomes]})

    async def events(self, asked: Asked, whose: Principal) -> Reply:
        """What happened, the newest first."""
        query = dict(parse_qsl(asked.query))
        find = partial(
            self._bank.events,
            whose,
            before=read_whole(query, "before"),
            limit=min(read_whole(query, "limit") or 100, _MOST_EVENTS),
        )
        request_id = query.get("request_id")
        found = await find(request_id=request_id)
        if not found and request_id:
            own_id = await self._own_id(request_id)
            found = await find(request_id=own_id) if own_id else []
        return reply_json({"events": found})

    async def undo(self, asked: Asked, whose: Principal) -> Reply:
        """Take back the change of an event, the newest by default."""
        number = read_event(read_body(asked))
        return self._answer(await self._bank.undo(whose, number, Origin(asked.request_id)))

    async def confirm(self, asked: Asked, whose: Principal) -> Reply:
        """Do what waits for the person's word, or with `accept: false` drop it."""
        body = read_body(asked)
        number, accept = read_event(body), body.get("accept", True)
        if not isinstance(accept, bool):
            raise BadRequest("accept: true or false.", param="accept")
        origin = Origin(asked.request_id)
        outcome = await self._bank.confirm(whose, number, origin, accept=accept)
        if outcome.kind == "missing":
            raise NothingWaits("Nothing waits for a confirmation there.", param="event")
        return self._answer(outcome)

    async def preferences(self, asked: Asked, whose: Principal) -> Reply:
        """What the person chose; PATCH changes it."""
        person = (await self._bank.read(whose)).person
        if asked.method == "PATCH":
            person = await self._bank.choose(whose, read_choices(read_body(asked)))
        return reply_json(
            {
                "enabled": person.enabled,
                "writable": person.writable,
                "retention_days": person.retention_days,
                "confirm": person.confirm,
            }
        )

    async def explain(self, asked: Asked, whose: Principal) -> Reply:
        """What the gate said about a request's message and what was done."""
        request_id = dict(parse_qsl(asked.query)).get("request_id", "")
        found = await self._explain(whose, request_id)
        if found is None and (own_id := await self._own_id(request_id)):
            found = await self._explain(whose, own_id)
        if found is None:
            raise NoTurn("No request of yours with that id is known.", param="request_id")
        return reply_json(found)

    async def _explain(self, whose: Principal, request_id: str) -> JSONObject | None:
        found = self._recent.explain(whose, request_id)
        return await self._bank.explain(whose, request_id) if found is None else found

    async def _own_id(self, request_id: str) -> str | None:
        """The id that memory knows a turn by which goes by its upstream's; the ledger has both."""
        turn = await self._ledger.timeline(request_id, None) or {}
        own_id = turn.get("own_id")
        return own_id if isinstance(own_id, str) else None

    def _store(self, key: str, value: str, rev: int | None = None) -> Store:
        slug = fit(lambda: check_key(key, self._settings.valid_keys))
        clean = fit(lambda: check_value(value, self._settings.char_limit))
        return Store(slug, clean, count_tokens(clean), rev)

    async def _one(self, asked: Asked, whose: Principal, change: Change) -> Outcome:
        return (await self._bank.change(whose, [change], Origin(asked.request_id)))[0]

    def _answer(self, outcome: Outcome) -> Reply:
        match outcome.kind:
            case "missing":
                raise NoMemory("No memory is stored under that key.", param="key")
            case "stale":
                raise Stale("It was changed meanwhile; read it again.")
            case "taken":
                raise Conflict("That key is taken.")
            case "error":
                return reply_json(outcome.as_artifact(), 409)
        headers = [(b"etag", f'"{outcome.rev}"'.encode())] if outcome.rev else []
        reply = reply_json(outcome.as_artifact())
        reply.headers.extend(headers)
        return reply


def memory_routes(
    edge: Edge, remembered: Remembered, settings: Settings, ledger: Ledger
) -> list[BaseRoute]:
    """The routes under `/usher/memory`."""
    api = MemoryApi(remembered, settings, ledger)
    table: list[tuple[str, Mapping[str, Answer]]] = [
        ("/usher/memory", {"GET": api.list, "DELETE": api.forget}),
        ("/usher/memory/export", {"GET": api.export}),
        ("/usher/memory/import", {"POST": api.take}),
        ("/usher/memory/events", {"GET": api.events}),
        ("/usher/memory/undo", {"POST": api.undo}),
        ("/usher/memory/confirm", {"POST": api.confirm}),
        ("/usher/memory/preferences", {"GET": api.preferences, "PATCH": api.preferences}),
        ("/usher/memory/explain", {"GET": api.explain}),
        ("/usher/memory/{key}", {"PUT": api.put, "DELETE": api.delete}),
        ("/usher/memory/{key}/rename", {"POST": api.rename}),
    ]
    return [
        Route(path, Endpoint(edge, _guard(api, answers)), methods=list(answers))
        for path, answers in table
    ]


def _guard(api: MemoryApi, answers: Mapping[str, Answer]) -> Callable[[Asked], Awaitable[Reply]]:
    async def guarded(asked: Asked) -> Reply:
        answer = answers.get(asked.method) or answers["GET"]  # HEAD
        return await answer(asked, api.person(asked))

    return guarded


_PRIVATE = [(b"cache-control", b"no-store")]


def reply_json(data: JSON, status: int = 200) -> Reply:
    """Data that no cache keeps."""
    headers = [(b"content-type", b"application/json"), *_PRIVATE]
    return Reply(status, headers, orjson.dumps(data))


def read_body(asked: Asked) -> JSONObject:
    """The body as an object; none is an empty one."""
    try:
        body = orjson.loads(asked.body or b"{}")
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict):
        raise BadRequest("The body is not a JSON object.")
    return body


def read_event(body: JSONObject) -> int | None:
    """The number of an event; None means the newest."""
    number = body.get("event")
    if isinstance(number, bool) or not isinstance(number, int | None):
        raise BadRequest("event: not a number.", param="event")
    return number


def read_choices(body: JSONObject) -> JSONObject:
    """What a person chooses; null takes a choice back where that makes sense."""
    for name in ("enabled", "writable"):
        if not isinstance(body.get(name, True), bool):
            raise BadRequest("enabled and writable are true or false.", param=name)
    days = body.get("retention_days")
    if isinstance(days, bool) or not isinstance(days, int | float | None) or (days or 1) <= 0:
        raise BadRequest("retention_days: a number of days, or null.", param="retention_days")
    if body.get("confirm") not in (None, "suspicious", "all"):
        raise BadRequest("confirm: suspicious, all or null.", param="confirm")
    known = ("enabled", "writable", "retention_days", "confirm")
    return {name: body[name] for name in known if name in body}


def read_match(asked: Asked) -> int | None:
    """The revision of If-Match; `If-None-Match: *` means that there must be none."""
    for name, value in asked.headers:
        text = value.decode("latin-1").strip()
        if name.lower() == b"if-none-match" and text == "*":
            return 0
        if name.lower() == b"if-match" and text != "*":
            match = _QUOTED.fullmatch(text)
            if match is None:
                raise BadRequest("If-Match: not a revision.", param="if-match")
            return int(match[1])
    return None


def read_whole(query: Mapping[str, str], name: str) -> int | None:
    """A whole number of the query."""
    text = query.get(name)
    if text is None:
        return None
    if not text.isdigit() or len(text) > 18:
        raise BadRequest(f"{name}: not a number.", param=name)
    return int(text)


def read_lines(body: bytes) -> list[tuple[str, str]]:
    """Keys and values of exported lines."""
    found: list[tuple[str, str]] = []
    for line in body.splitlines()[: _MOST_IMPORTED + 1]:
        try:
            row: JSON = orjson.loads(line or b"null")
        except orjson.JSONDecodeError:
            row = {}
        if row is None:
            continue
        if not isinstance(row, dict) or not isinstance(row.get("key"), str):
            raise BadRequest(f"Line {len(found) + 1}: not a memory.")
        found.append((row["key"], str(row.get("value", ""))))
    if len(found) > _MOST_IMPORTED:
        raise BadRequest(f"More than {_MOST_IMPORTED} memories at once.")
    return found


def fit(check: Callable[[], str]) -> str:
    """What a check lets through; its refusal is the caller's mistake."""
    try:
        return check()
    except Refused as refused:
        raise BadRequest(f"This cannot be stored: {refused.reason}.", param="value") from None
