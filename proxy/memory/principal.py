"""A request's caller and what it says of its user come in; whose memories are meant goes out.

Without a user there is no memory: a bucket that several people share would tell each of them what
the others said.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proxy.errors import BadRequest
from proxy.memory_settings import Memory
from proxy.plan.identity import Caller
from proxy.wire import JSON, Headers, JSONObject

MOST_CHARS = 256
_BLANK = " \t\r\n"
"""Other white space is part of a name, and refused with it: two users must not become one."""
OPEN_DOOR = "open"
"""The key of callers that need none."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Whose memories; nothing is read or written without all three."""

    tenant: str
    user: str
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Absent:
    """Nobody's memories, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Claim:
    """What a request says about its user: by our own header, by others, and in its body."""

    caller: Caller
    headers: Headers
    named: str | None = None
    app: str | None = None
    body: JSONObject | None = None
    project: str | None = None


def identify(claim: Claim, settings: Memory) -> Principal | Absent:
    """Whose memories a request is about.

    Raises BadRequest when it names two users and the operator wants that refused.
    """
    users = list(dict.fromkeys(_named_users(claim, settings)))
    if not users:
        return Absent("no_user")
    if len(users) > 1:
        if settings.strict:
            raise BadRequest("The request names more than one user.", param="user")
        return Absent("conflicting_users")
    if not _is_name(users[0]):
        return Absent("bad_user")
    if len(_speakers(claim.body)) > 1:
        return Absent("several_speakers")
    scope = _scope(claim, settings)
    if isinstance(scope, Absent):
        return scope
    return Principal(tenant_of(claim.caller, claim.headers), users[0], scope)


def _scope(claim: Claim, settings: Memory) -> str | Absent:
    """Which of the user's sets, where there are several."""
    if settings.scope == "user":
        return ""
    kind = settings.scope.removeprefix("user+")
    name = claim.app if kind == "app" else claim.project
    return f"{kind}:{name}" if name else Absent(f"no_{kind}")


def tenant_of(caller: Caller, headers: Headers) -> str:
    """Who separates users: the gateway key's tenant, else whoever holds the upstream's key."""
    if caller.key != OPEN_DOOR:
        return caller.tenant
    for name, value in headers:
        if name.lower() == b"authorization":
            secret = hashlib.blake2b(value.strip(), digest_size=16, person=b"usher memory")
            return f"{caller.tenant}:{secret.hexdigest()}"
    return caller.tenant


def _named_users(claim: Claim, settings: Memory) -> Iterator[str]:
    """Every user that a trusted source names; one who is bound to the key comes first."""
    if claim.caller.user:
        yield claim.caller.user
    if settings.trust == "none":
        return
    if claim.named:
        yield claim.named
    for wanted in settings.user_headers:
        for name, value in claim.headers:
            if name.lower().decode("latin-1") == wanted and value.strip():
                # Bytes that are no UTF-8 stay apart, and are no name.
                yield value.strip().decode("utf-8", "surrogateescape")
    bound = claim.caller.user or claim.named
    if not bound and _trusts_body(claim.caller, settings):
        yield from _body_user(claim.body or {})


def _trusts_body(caller: Caller, settings: Memory) -> bool:
    if settings.trust == "auto":
        return caller.key == OPEN_DOOR
    return settings.trust == "body"


def _body_user(body: JSONObject) -> Iterator[str]:
    """The first of the places in which a body names its user; structured ones are not names."""
    metadata = body.get("metadata")
    places: Sequence[JSON] = (
        body.get("user"),
        metadata.get("user_id") if isinstance(metadata, dict) else None,
        body.get("safety_identifier"),
    )
    for place in places:
        if isinstance(place, str) and place.strip() and not place.lstrip().startswith("{"):
            yield place.strip(_BLANK)
            return


def _is_name(user: str) -> bool:
    return 0 < len(user) <= MOST_CHARS and user.isprintable() and bool(user.strip("."))


def _speakers(body: JSONObject | None) -> set[str]:
    """Who speaks in a group chat: memories of one must not be told to the others."""
    messages = (body or {}).get("messages")
    found = messages if isinstance(messages, list) else ()
    return {
        message["name"]
        for message in found
        if isinstance(message, dict)
        and message.get("role") == "user"
        and isinstance(message.get("name"), str)
    }
