"""Headers between the two hops: the client's go in, the upstream's come out, and back again."""

from typing import Final

from proxy.upstream.target import Target
from proxy.wire import Headers, Repeated

HOP_BY_HOP: Final = frozenset({
    b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization",
    b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"http2-settings",
})  # fmt: skip
"""RFC 9110 §7.6.1; each side frames its own messages."""

CREDENTIALS: Final = frozenset({b"authorization", b"api-key", b"x-api-key", b"x-goog-api-key"})

_OUR_HOP: Final = frozenset({
    b"host", b"cookie", b"expect", b"forwarded", b"x-real-ip", b"true-client-ip", b"x-client-ip",
    b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-port", b"x-forwarded-proto",
    b"cdn-loop", b"cf-connecting-ip", b"cf-ipcountry", b"cf-ray", b"cf-visitor",
})  # fmt: skip
"""They tell about the way to us; a CDN in front of the upstream refuses its own from outside."""

_BODY: Final = frozenset({b"accept-encoding", b"content-encoding", b"content-length"})
_BODY_BACK: Final = frozenset({
    b"accept-ranges", b"content-encoding", b"content-length", b"content-md5", b"content-range",
    b"digest", b"etag", b"repr-digest",
})  # fmt: skip
_NEVER_BACK: Final = HOP_BY_HOP | {b"alt-svc", b"set-cookie"}

_DROPPED: Final = {
    (intercepted, forwards): HOP_BY_HOP
    | _OUR_HOP
    | (_BODY if intercepted else frozenset())
    | (frozenset() if forwards else CREDENTIALS)
    for intercepted in (False, True)
    for forwards in (False, True)
}
_OURS: Final = b"x-usher-"
_NOTE: Final = "request_headers"


def request_headers(
    client: Headers, target: Target, *, intercepted: bool, own_credentials: bool
) -> Headers:
    """What goes up, names in lower case and in the client's order, then our own.

    `intercepted`: we send a decoded body and want to read the answer, so encodings are ours to
    state. `own_credentials`: the caller's credentials are for the upstream, because no key of
    ours let them in; they go up unless the target has a key configured, which replaces them.
    They never go to a litellm provider, which would take any key for its own.
    """
    forwards = own_credentials and target.api_key is None and target.kind == "openai"
    if not isinstance(client, Repeated):
        return _render_up(client, target, intercepted=intercepted, forwards=forwards)
    asked = target, intercepted, forwards
    known: tuple[object, Repeated] | None = client.notes.get(_NOTE)
    if known is not None and known[0] == asked:
        return known[1]
    kept = _render_up(client, target, intercepted=intercepted, forwards=forwards)
    # The length is another one each time; whoever sends a body that is whole counts it anyway.
    fields = [field for field in kept if field[0] != b"content-length"]
    same = Repeated(fields, client.length, {})
    client.notes[_NOTE] = asked, same
    return same


def _render_up(client: Headers, target: Target, *, intercepted: bool, forwards: bool) -> Headers:
    dropped = _DROPPED[intercepted, forwards]
    kept: Headers = []
    named = b""
    used = b""
    for sent, value in client:
        name = sent.lower()
        if name not in dropped:
            if name[:8] != _OURS:
                kept.append((name, value))
        elif name == b"connection":
            named += b"," + value
        elif name in CREDENTIALS:
            used = used if used == b"authorization" else name
    if named:
        kept = _without_named(kept, named)
    if intercepted:
        kept.append((b"accept-encoding", b"identity"))
    if target.api_key is not None:
        kept.append(_credential(target, used))
    return kept


def response_headers(upstream: Headers, *, altered: bool = False) -> Headers:
    """What goes back, names in lower case; `altered` when the body is not the upstream's bytes."""
    dropped = _NEVER_BACK | _BODY_BACK if altered else _NEVER_BACK
    kept: Headers = []
    named = b""
    for sent, value in upstream:
        name = sent.lower()
        if name not in dropped:
            if name[:8] != _OURS:
                kept.append((name, value))
        elif name == b"connection":
            named += b"," + value
    return _without_named(kept, named) if named else kept


def _without_named(headers: Headers, named: bytes) -> Headers:
    """Drop what a Connection header declared to be for one hop only."""
    names = {name.strip().lower() for name in named.split(b",")} - HOP_BY_HOP
    return [field for field in headers if field[0] not in names]


def _credential(target: Target, used: bytes) -> tuple[bytes, bytes]:
    """The target's key in the header that its surface reads.

    A caller of Anthropic's or Google's surface shows it by its own key's header.
    """
    key = (target.api_key or "").encode()
    if target.azure:
        return b"api-key", key
    if used in {b"x-api-key", b"x-goog-api-key"}:
        return used, key
    return b"authorization", b"Bearer " + key
