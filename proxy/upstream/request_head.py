"""A request comes in; the bytes of its HTTP/1.1 head, and where to send them, go out."""

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from proxy.errors import BadRequest, UpstreamError
from proxy.upstream.transport import UpstreamRequest

PORTS = {"http": 80, "https": 443}
EMPTY_BODY = frozenset({"POST", "PUT", "PATCH"})
"""Methods whose empty body is announced (RFC 9110 §8.6)."""


class Origin(NamedTuple):
    """Who is connected to."""

    secure: bool
    host: str
    port: int


class Place(NamedTuple):
    """A URL, taken apart: `target` stands in the request line, `authority` in the Host header."""

    origin: Origin
    target: bytes
    authority: bytes


@lru_cache(maxsize=1024)
def locate(url: str) -> Place:
    """Take a URL apart, its bytes unchanged. Raises UpstreamError or BadRequest."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise UpstreamError("the upstream's URL is not valid") from None
    host = parts.hostname
    if not host or parts.scheme not in PORTS:
        raise UpstreamError("the upstream's URL is not valid")
    rest = url.partition("://")[2].partition("#")[0]
    start = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
    target = rest[start:] if rest[start : start + 1] == "/" else "/" + rest[start:]
    if any(letter <= " " or letter == "\x7f" for letter in target):
        raise BadRequest("a request header or the path cannot be forwarded")
    origin = Origin(parts.scheme == "https", host, port or PORTS[parts.scheme])
    shown = f"[{host}]" if ":" in host else host
    if port is not None and port != PORTS[parts.scheme]:
        shown = f"{shown}:{port}"
    return Place(origin, target.encode(), _domain(shown))


def render_head(request: UpstreamRequest, place: Place) -> bytes:
    """The head with its framing. Raises BadRequest for what would break out of a line."""
    lines = [
        b"%b %b HTTP/1.1\r\nhost: %b" % (request.method.encode(), place.target, place.authority)
    ]
    body = request.body
    framed = False
    for name, value in request.headers:
        if name == b"content-length":
            if not request.replayable:
                framed = True
                lines.append(b"content-length: " + value)
            continue
        lines.append(name + b": " + value)
    if isinstance(body, bytes):
        if body or request.method in EMPTY_BODY:
            lines.append(b"content-length: %d" % len(body))
    elif body is None:
        if request.method in EMPTY_BODY:
            lines.append(b"content-length: 0")
    elif not framed:
        lines.append(b"transfer-encoding: chunked")
    head = b"\r\n".join(lines)
    if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines) or b"\0" in head:
        raise BadRequest("a request header or the path cannot be forwarded")
    return head + b"\r\n\r\n"


def _domain(authority: str) -> bytes:
    try:
        return authority.encode("ascii")
    except UnicodeEncodeError:
        return authority.encode("idna")
