"""A file of recorded traffic comes in (vcrpy's format); the answer to a request goes out, once.

Requests are recognised by method, path with query, and body: JSON by what it says, whatever its
spaces and the order of its keys, anything else by its bytes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import yaml

from proxy.errors import ConfigError
from proxy.wire import JSON, Headers

MADE_ANEW = frozenset({
    "connection", "content-length", "date", "keep-alive", "server", "set-cookie",
    "transfer-encoding",
})  # fmt: skip
"""Headers of an answer that belong to the connection it came by."""
_BASE = re.compile(r"^/(?:.*/)?v1(?=/|$)")


@dataclass(frozen=True, slots=True)
class Interaction:
    """One recorded exchange; `target` is the path with its query."""

    method: str
    target: str
    sent: bytes
    status: int
    headers: Headers
    answer: bytes


@dataclass
class Cassette:
    """Recorded exchanges, and which of them are still to be played."""

    interactions: Sequence[Interaction]
    repeat: bool = False
    unplayed: list[Interaction] = field(init=False)

    def __post_init__(self) -> None:
        self.unplayed = list(self.interactions)

    @property
    def base(self) -> str:
        """The path of the base URL that an SDK was given, such as `/v1`."""
        bases = (_BASE.match(one.target) for one in self.interactions)
        return next((found[0] for found in bases if found), "")

    def play(self, method: str, target: str, body: bytes) -> Interaction | None:
        """The first unplayed answer to such a request; with `repeat` the last one again."""
        for one in self.unplayed:
            if _same(one, method, target, body):
                self.unplayed.remove(one)
                return one
        played = self.interactions if self.repeat else ()
        return next((one for one in reversed(played) if _same(one, method, target, body)), None)

    def explain(self, method: str, target: str, body: bytes) -> str:
        """Why there is no answer: where the request differs from the nearest recorded one."""
        if any(_same(one, method, target, body) for one in self.interactions):
            return "it is recorded, and was played already"
        near = [one for one in self.unplayed if (one.method, one.target) == (method, target)]
        if not near:
            return "no such method and path is left in the cassette"
        places = [differ(_parse(one.sent), _parse(body)) for one in near]
        return f"the recorded request differs at {max(places, key=len) or 'its bytes'}"


def load_cassette(path: Path) -> Cassette:
    """The exchanges of a file, or of all `*.yaml` below a folder. Raises ConfigError."""
    files = sorted(path.rglob("*.yaml")) if path.is_dir() else [path]
    interactions = [one for file in files for one in _read(file)]
    if not interactions:
        raise ConfigError(f"{path}: there is no recorded traffic in it")
    return Cassette(interactions)


def differ(one: JSON, other: JSON, place: str = "") -> str:
    """Where two values first differ, as `messages[1].content`; nothing when they are the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            inner = f"{place}.{key}" if place else str(key)
            if key not in one or key not in other:
                return inner
            if found := differ(one[key], other[key], inner):
                return found
        return ""
    if isinstance(one, list) and isinstance(other, list):
        for index, (here, there) in enumerate(zip(one, other, strict=False)):
            if found := differ(here, there, f"{place}[{index}]"):
                return found
        return "" if len(one) == len(other) else f"{place}[{min(len(one), len(other))}]"
    return "" if one == other else place


def _same(one: Interaction, method: str, target: str, body: bytes) -> bool:
    if (one.method, one.target) != (method, target):
        return False
    return one.sent == body or _canonical(one.sent) == _canonical(body)


def _canonical(body: bytes) -> bytes:
    try:
        return orjson.dumps(orjson.loads(body), option=orjson.OPT_SORT_KEYS)
    except orjson.JSONDecodeError:
        return body


def _parse(body: bytes) -> JSON:
    try:
        found: JSON = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return found


def _read(file: Path) -> Iterator[Interaction]:
    try:
        found = yaml.safe_load(file.read_bytes())
        recorded = found["interactions"]
        for one in recorded:
            yield _interaction(one["request"], one["response"])
    except OSError as error:
        raise ConfigError(f"{file}: {(error.strerror or 'cannot be read').lower()}") from None
    except (yaml.YAMLError, LookupError, TypeError, ValueError):
        raise ConfigError(f"{file}: not a cassette as vcrpy writes it") from None


def _interaction(request: Mapping[str, Any], response: Mapping[str, Any]) -> Interaction:
    parts = urlsplit(request["uri"])
    body = response.get("body") or {}
    return Interaction(
        method=request["method"],
        target=f"{parts.path}?{parts.query}" if parts.query else parts.path,
        sent=_bytes(request.get("body", request.get("parsed_body"))),
        status=int(response["status"]["code"]),
        headers=list(_headers(response.get("headers") or {})),
        answer=_bytes(body.get("string", response.get("parsed_body"))),
    )


def _headers(recorded: Mapping[str, Any]) -> Iterator[tuple[bytes, bytes]]:
    for name, values in recorded.items():
        if name.lower() not in MADE_ANEW:
            for value in values if isinstance(values, list) else [values]:
                yield name.lower().encode("latin-1"), str(value).encode("latin-1")


def _bytes(recorded: Any) -> bytes:
    if recorded is None:
        return b""
    if isinstance(recorded, bytes):
        return recorded
    return recorded.encode() if isinstance(recorded, str) else orjson.dumps(recorded)
