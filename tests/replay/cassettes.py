"""Recorded traffic between gateway and upstream: scrubbed, matched by content, cut into pieces."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import vcr
from vcr.persisters.filesystem import FilesystemPersister
from vcr.serializers import yamlserializer

from tests.fakes.scripted import Received, Script, Wait, chunk, last_chunk, reply, stream_head

FOLDER = Path(__file__).parents[2] / "cassettes"
HOME = "http://standin.invalid"
"""The address that recordings carry: they were made with the stand-in model, not with a vendor."""

KEPT_UP = frozenset({"accept", "content-type"})
KEPT_BACK = frozenset({"content-type"})

CUTS: dict[str, Callable[[bytes], list[bytes]]] = {
    "at once": lambda body: [body],
    "by line": lambda body: body.splitlines(keepends=True),
    "inside characters": lambda body: re.split(
        rb"(?<=[\xc2-\xf4])|(?<=\n)(?=\n)|(?<=data)(?=:)|(?<=\\)", body
    ),
    "by byte": lambda body: [body[at : at + 1] for at in range(len(body))],
}


def make_recorder(gateway_port: int, *, record: bool) -> Any:
    """A vcrpy that sees the traffic to the upstream only, and keeps no secret of it."""
    recorder = vcr.VCR(
        record_mode=vcr.mode.ALL if record else vcr.mode.NONE,
        match_on=["method", "path", "json body"],
        before_record_request=lambda request: scrub_request(request, gateway_port),
        before_record_response=scrub_response,
        decode_compressed_response=True,
    )
    recorder.register_matcher("json body", match_body)
    return recorder


def scrub_request(request: Any, gateway_port: int) -> Any:
    """None for the client's own traffic to the gateway; else the request without secrets."""
    if request.host == "127.0.0.1" and request.port == gateway_port:
        return None
    for name in list(request.headers):
        if name.lower() not in KEPT_UP:
            del request.headers[name]
    request.uri = f"{HOME}/{request.uri.split('/', 3)[3]}"
    return request


def scrub_response(response: Any) -> Any:
    """The response without the headers that could name an account or a session."""
    headers = {
        name.lower(): values
        for name, values in response["headers"].items()
        if name.lower() in KEPT_BACK
    }
    return {**response, "headers": headers}


def match_body(one: Any, other: Any) -> None:
    """Bodies match when they are the same JSON, whatever their spaces and order of keys."""
    assert canonical(one.body) == canonical(other.body)


def canonical(body: bytes | str | None) -> bytes:
    """The same bytes for the same JSON; other bodies as they are."""
    raw = _raw(body)
    try:
        return orjson.dumps(orjson.loads(raw), option=orjson.OPT_SORT_KEYS)
    except orjson.JSONDecodeError:
        return raw


def _raw(body: bytes | str | None) -> bytes:
    return body.encode() if isinstance(body, str) else body or b""


@dataclass(frozen=True, slots=True)
class Interaction:
    """One recorded exchange."""

    method: str
    path: str
    sent: bytes
    status: int
    content_type: str
    answer: bytes


def load(path: Path) -> list[Interaction]:
    """The exchanges of a cassette file."""
    requests, responses = FilesystemPersister.load_cassette(str(path), yamlserializer)
    return [
        Interaction(
            method=request.method,
            path=request.path,
            sent=_raw(request.body),
            status=response["status"]["code"],
            content_type=response["headers"]["content-type"][0],
            answer=response["body"]["string"],
        )
        for request, response in zip(requests, responses, strict=True)
    ]


class Player:
    """Answers a scripted upstream's requests from a cassette, its bodies cut into pieces."""

    def __init__(self, path: Path, cut: Callable[[bytes], list[bytes]]) -> None:
        self.unplayed = load(path)
        self.altered: list[bytes] = []
        """Bodies with the recorded JSON in other bytes: a provider's prompt cache misses them."""
        self._cut = cut

    def answer(self, request: Received) -> Script:
        """Play the recorded exchange with the same method, path and JSON; once only."""
        wanted = (request.method, request.target, canonical(request.body))
        for found in self.unplayed:
            if (found.method, found.path, canonical(found.sent)) == wanted:
                self.unplayed.remove(found)
                if found.sent != request.body:
                    self.altered.append(request.body)
                return self._play(found)
        return [reply(599, b"this request is not in the cassette")]

    def _play(self, found: Interaction) -> Script:
        steps: list[bytes | Wait] = [stream_head(("Content-Type", found.content_type))]
        if found.status != 200 or "event-stream" not in found.content_type:
            head = f"HTTP/1.1 {found.status} Replayed\r\nContent-Type: {found.content_type}\r\n"
            steps = [f"{head}Transfer-Encoding: chunked\r\n\r\n".encode()]
        for piece in filter(None, self._cut(found.answer)):
            steps += [chunk(piece), Wait(0)]
        return [*steps, last_chunk()]
