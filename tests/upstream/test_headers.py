"""Which headers cross the gateway, in both directions."""

import pytest

from proxy.upstream.headers import request_headers, response_headers
from proxy.upstream.target import Kind, Target
from proxy.wire import Headers, Repeated

PLAIN: Headers = [
    (b"accept", b"application/json"),
    (b"accept-encoding", b"gzip, br"),
    (b"content-type", b"application/json"),
    (b"content-length", b"12"),
    (b"user-agent", b"OpenAI/Python"),
    (b"x-stainless-lang", b"python"),
    (b"openai-organization", b"org"),
    (b"traceparent", b"00-1-2-01"),
    (b"idempotency-key", b"i"),
]
CREDENTIALS: Headers = [
    (b"authorization", b"Bearer caller"),
    (b"api-key", b"caller"),
    (b"x-api-key", b"caller"),
    (b"x-goog-api-key", b"caller"),
]


def target(
    key: str | None = None, base_url: str = "https://api.example.com/v1", kind: Kind = "openai"
) -> Target:
    return Target("p", kind, base_url, key, None, ask_usage=True)


def up(
    headers: Headers, to: Target | None = None, *, intercepted: bool = False, own: bool = True
) -> Headers:
    return request_headers(headers, to or target(), intercepted=intercepted, own_credentials=own)


def test_ordinary_headers_go_up_in_order() -> None:
    """What a client says about its request is for the upstream, encodings included."""
    assert up(PLAIN) == PLAIN


def test_body_headers_are_ours_on_intercepted_routes() -> None:
    """A body that we decoded and an answer that we read are plain."""
    kept = up([*PLAIN, (b"content-encoding", b"zstd")], intercepted=True)
    dropped = {b"accept-encoding", b"content-length"}
    assert kept == [
        *[field for field in PLAIN if field[0] not in dropped],
        (b"accept-encoding", b"identity"),
    ]


@pytest.mark.parametrize(
    "name",
    [
        "connection",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "host",
        "cookie",
        "expect",
        "x-forwarded-for",
        "forwarded",
        "cf-connecting-ip",
        "x-usher-defer",
        "x-usher-user-id",
        "x-usher-key",
        "X-Usher-Keep",
        "Cookie",
    ],
)
@pytest.mark.parametrize("intercepted", [False, True])
def test_headers_of_our_hop_stay_here(name: str, intercepted: bool) -> None:
    """Hop-by-hop headers, cookies, the way to us and our own options are not the upstream's."""
    kept = up([(name.encode(), b"secret")], intercepted=intercepted)
    assert all(value != b"secret" for _, value in kept)


def test_headers_named_in_connection_stay_here() -> None:
    """A header that the client declares to be for one hop ends there."""
    headers = [(b"Connection", b"keep-alive, X-Hop"), (b"x-hop", b"1"), (b"x-end", b"2")]
    assert up(headers) == [(b"x-end", b"2")]


def test_callers_credentials_go_up_without_a_key_of_ours() -> None:
    """With no key configured and none of ours used, the caller pays with its own."""
    assert up(CREDENTIALS) == CREDENTIALS


def test_gateway_key_never_goes_up() -> None:
    """What let the caller in here is not shown to the upstream."""
    assert up(CREDENTIALS, own=False) == []


@pytest.mark.parametrize("kind", ["litellm", "standin"])
def test_callers_credentials_are_for_openai_upstreams_only(kind: Kind) -> None:
    """A litellm provider would take any key for its own vendor's."""
    assert up(CREDENTIALS, target(kind=kind)) == []


@pytest.mark.parametrize("own", [False, True])
def test_configured_key_replaces_the_callers(own: bool) -> None:
    """With a key configured, the caller's credentials never leave."""
    assert up([CREDENTIALS[0]], target("sk-up"), own=own) == [(b"authorization", b"Bearer sk-up")]


@pytest.mark.parametrize(
    ("sent", "base_url", "field"),
    [
        (b"authorization", "https://api.example.com/v1", (b"authorization", b"Bearer sk-up")),
        (b"api-key", "https://api.example.com/v1", (b"authorization", b"Bearer sk-up")),
        (b"x-api-key", "https://api.example.com/v1", (b"x-api-key", b"sk-up")),
        (b"x-goog-api-key", "https://api.example.com/v1", (b"x-goog-api-key", b"sk-up")),
        (b"authorization", "https://r.openai.azure.com", (b"api-key", b"sk-up")),
        (b"x-api-key", "https://r.openai.azure.com", (b"api-key", b"sk-up")),
    ],
)
def test_configured_key_comes_in_the_surfaces_header(
    sent: bytes, base_url: str, field: tuple[bytes, bytes]
) -> None:
    """Azure, Anthropic's and Google's surfaces read the key from headers of their own."""
    assert up([(sent, b"caller")], target("sk-up", base_url)) == [field]


def test_answer_headers_come_back() -> None:
    """Rate limits, ids, retry hints and the body's own headers reach the client."""
    headers: Headers = [
        (b"X-Request-Id", b"r"),
        (b"openai-processing-ms", b"3"),
        (b"x-ratelimit-remaining-tokens", b"1"),
        (b"retry-after-ms", b"20"),
        (b"x-should-retry", b"false"),
        (b"content-encoding", b"gzip"),
        (b"content-length", b"9"),
        (b"content-type", b"application/json"),
    ]
    assert response_headers(headers) == [(name.lower(), value) for name, value in headers]


@pytest.mark.parametrize(
    "name",
    ["Connection", "keep-alive", "transfer-encoding", "Set-Cookie", "alt-svc", "x-usher-tools"],
)
def test_headers_of_the_upstreams_hop_stay_there(name: str) -> None:
    """Framing, cookies of another host and another gateway's own headers do not come back."""
    assert response_headers([(name.encode(), b"x"), (b"x-end", b"1")]) == [(b"x-end", b"1")]


def test_answer_headers_named_in_connection_stay_there() -> None:
    """What the upstream declares to be for one hop ends there, wherever it stands."""
    headers = [(b"x-hop", b"1"), (b"connection", b"close, X-Hop"), (b"x-end", b"2")]
    assert response_headers(headers) == [(b"x-end", b"2")]


def test_altered_answer_loses_what_described_the_bytes() -> None:
    """Length, encoding and checksums of the upstream's body are wrong for ours."""
    headers: Headers = [
        (b"content-length", b"9"),
        (b"content-encoding", b"br"),
        (b"etag", b"e"),
        (b"content-type", b"text/event-stream"),
    ]
    assert response_headers(headers, altered=True) == [(b"content-type", b"text/event-stream")]


def test_repeated_headers_go_up_as_before() -> None:
    """Without their length, which whoever sends counts; another target has headers of its own."""
    first = Repeated(PLAIN, 12, {})
    kept = up(first)
    assert kept == [field for field in PLAIN if field[0] != b"content-length"]
    assert up(Repeated(PLAIN, 13, first.notes)) is kept
    keyed = up(Repeated(PLAIN, 13, first.notes), target("sk-1"))
    assert keyed == [*kept, (b"authorization", b"Bearer sk-1")]
    assert up(first, target("sk-2")) == [*kept, (b"authorization", b"Bearer sk-2")]
    plain = up(first, intercepted=True)
    assert plain == up(PLAIN, intercepted=True)
    lent: Headers = [*PLAIN, *CREDENTIALS]
    notes: dict[str, object] = {}
    for own in (True, False, True):
        fields = [field for field in up(lent, own=own) if field[0] != b"content-length"]
        assert up(Repeated(lent, 12, notes), own=own) == fields
