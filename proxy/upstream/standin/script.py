"""Replies that a test wrote go in; the stand-in sends them in order and keeps what it received."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import orjson

from proxy.errors import UpstreamError
from proxy.wire import JSON, Headers, JSONObject

End = Literal["close", "cut", "hang"]


@dataclass(frozen=True, slots=True)
class Step:
    """One reply: the first of `error`, `body`, `frames`, `message` that is set, else the model's.

    `delay` seconds pass before the head, `gap` seconds before each chunk. After `keep` chunks
    (None: all) the body ends properly, is cut off, or hangs until the idle timeout.
    """

    error: UpstreamError | None = None
    body: JSON = None
    status: int = 200
    headers: Sequence[tuple[bytes, bytes]] = ()
    frames: Sequence[bytes] | None = None
    message: JSONObject | None = None
    finish: str | None = None
    usage: JSONObject | None = None
    delay: float = 0.0
    gap: float = 0.0
    keep: int | None = None
    end: End = "close"


@dataclass(slots=True)
class Received:
    """A request as it arrived, and what became of its reply."""

    method: str
    path: str
    headers: Headers
    body: bytes
    outcome: Literal["running", "finished", "failed", "closed"] = "running"
    """`closed`: the caller hung up before the end."""

    @property
    def json(self) -> JSON:
        """The parsed body."""
        return orjson.loads(self.body)

    @property
    def tool_names(self) -> list[str]:
        """The names of the functions in `tools`."""
        tools = self.json.get("tools") or ()
        return [tool["function"]["name"] for tool in tools if tool["type"] == "function"]


@dataclass(slots=True)
class Script:
    """Steps to send, one per request, and every request so far; afterwards the model answers."""

    steps: Iterable[Step] = ()
    received: list[Received] = field(default_factory=list)
    _left: deque[Step] = field(init=False)

    def __post_init__(self) -> None:
        self._left = deque(self.steps)

    @property
    def unplayed(self) -> int:
        """How many steps are left."""
        return len(self._left)

    def next(self, received: Received) -> Step:
        """Keep a request and hand out the step that answers it."""
        self.received.append(received)
        return self._left.popleft() if self._left else Step()
