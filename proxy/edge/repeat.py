"""A head comes in that its connection has sent before; what was read then goes out.

An SDK sends the same head with every request of a connection, except for the length of the body.
To compare it takes a microsecond or two. To parse it, and to draw from it what the gateway needs to
know, takes a fifth of what a small request costs.
"""

import re
from typing import Any, NamedTuple, Self

from starlette.types import Scope

from proxy.wire import Headers, Repeated

LONGEST_HEAD = 8 * 1024
_LONGEST_LENGTH = 11
"""Digits of a body's length, and what follows them."""

_OURS = "usher."
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: ?([0-9]+)\r\n")
_ELSEWHERE = frozenset({b"expect", b"trailer", b"transfer-encoding", b"upgrade"})
"""Headers by which more than headers and a body of that length would be meant."""


class Found(NamedTuple):
    """A head that is known: the length of the body in bytes, and where the body begins."""

    length: int
    start: int


class KnownHead:
    """What a connection's parser made of a head."""

    __slots__ = ("_after", "_at", "_before", "_fields", "_notes", "_scope")

    def __init__(self, before: bytes, after: bytes, scope: Scope, at: int) -> None:
        self._before = before
        self._after = after
        self._fields: Headers = list(scope["headers"])
        self._at = at
        # Without what our own server adds to it, which is of that one request.
        self._scope = {name: scope[name] for name in scope if not name.startswith(_OURS)}
        self._notes: dict[str, Any] = {}

    @classmethod
    def learn(cls, data: bytes, scope: Scope) -> Self | None:
        """The head that `data` begins with and `scope` is of; None for any but the plainest."""
        end = data.find(b"\r\n\r\n", 0, LONGEST_HEAD) + 4
        headers: Headers = scope["headers"]
        names = [name for name, _ in headers]
        lengths = list(_LENGTH.finditer(data, 0, end))
        if end < 4 or len(lengths) != 1 or names.count(b"content-length") != 1:
            return None
        if not _ELSEWHERE.isdisjoint(names) or not _is_read_alike(data[: end - 4], scope):
            return None
        first, last = lengths[0].span(1)
        return cls(data[:first], data[last:end], scope, names.index(b"content-length"))

    def measure(self, data: bytes) -> Found | None:
        """Whether a request begins with this head, whatever its length."""
        if not data.startswith(self._before):
            return None
        first = len(self._before)
        last = data.find(b"\r", first, first + _LONGEST_LENGTH)
        digits = data[first:last]
        if last < 0 or not digits.isdigit() or digits.startswith(b"0"):
            return None
        if not data.startswith(self._after, last):
            return None
        return Found(int(digits), last + len(self._after))

    def scope(self, length: int, state: dict[str, Any]) -> dict[str, Any]:
        """The scope of another request with this head."""
        headers = Repeated(self._fields, length, self._notes)
        headers[self._at] = (b"content-length", b"%d" % length)
        scope = self._scope.copy()
        scope["headers"] = headers
        scope["state"] = state
        return scope


def _is_read_alike(head: bytes, scope: Scope) -> bool:
    """Whether cutting at line ends finds what the parser found, in a POST of HTTP/1.1."""
    first, *lines = head.split(b"\r\n")
    query = b"?" + scope["query_string"] if scope["query_string"] else b""
    if first != b"POST " + scope["raw_path"] + query + b" HTTP/1.1":
        return False
    cut = [line.partition(b":") for line in lines]
    headers: Headers = scope["headers"]
    return headers == [(name.lower(), value.lstrip(b" \t")) for name, _, value in cut]
