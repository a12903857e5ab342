"""A request comes in; the bytes of its HTTP/1.1 head, and where to send them, go out."""

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from proxy.errors import BadRequest, UpstreamError
from proxy.upstream.transport import UpstreamRequest
from proxy.wire import Headers, Repeated

_NOTE = "render_head"
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
    """The head of a request whose body is whole, with its framing.

    Raises BadRequest for what would break out of a line.
    """
    body = request.body
    lines = _render_fields(request.method, place, request.headers)
    if body or request.method in EMPTY_BODY:
        size = len(body) if isinstance(body, bytes) else 0
        return b"%b\r\ncontent-length: %d\r\n\r\n" % (lines, size)
    return lines + b"\r\n\r\n"


def _render_fields(method: str, place: Place, headers: Headers) -> bytes:
    """The head up to its framing, from the notes of headers that were sent before."""
    if not isinstance(headers, Repeated):
        return _render_anew(method, place, headers)
    known: tuple[object, bytes] | None = headers.notes.get(_NOTE)
    if known is not None and known[0] == (method, place):
        return known[1]
    rendered = _render_anew(method, place, headers)
    headers.notes[_NOTE] = (method, place), rendered
    return rendered


def _render_anew(method: str, place: Place, headers: Headers) -> bytes:
    first = b"%b %b HTTP/1.1\r\nhost: %b" % (method.encode(), place.target, place.authority)
    lines = [name + b": " + value for name, value in headers if name != b"content-length"]
    head = b"\r\n".join((first, *lines))
    breaks = len(lines) + 1
    if head.count(b"\n") != breaks or head.count(b"\r") != breaks or b"\0" in head:
        raise BadRequest("a request header or the path cannot be forwarded")
    return head


def _domain(authority: str) -> bytes:
    try:
        return authority.encode("ascii")
    except UnicodeEncodeError:
        return authority.encode("idna")
