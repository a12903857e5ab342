"""One turn's memory: what was started for it comes in; what became of it goes out."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from proxy.memory.attach import extend, render_comments, render_events
from proxy.memory.change import Outcome
from proxy.memory.principal import Principal
from proxy.wire import JSONObject

Status = Literal[
    "pending",
    "pass",
    "skip",
    "error_pass",
    "rate_limited",
    "memoised",
    "busy",
    "idle",
    "read",
    "off",
]


@dataclass(slots=True)
class Session:
    """Made at a turn's beginning; the agent's run tells it what it did.

    `body` is the request with memories in it, None when it goes up as it came.
    """

    request_id: str
    whose: Principal | None
    status: Status = "off"
    reason: str | None = None
    body: bytes | None = None
    injected: int = 0
    dropped: tuple[str, ...] = ()
    attachments: bool = False
    conversation: str | None = None
    score: float | None = None
    join_seconds: float = 0.0
    late: Callable[[Principal, Sequence[JSONObject]], None] | None = None
    _artifacts: list[JSONObject] = field(default_factory=list)
    _done: asyncio.Event = field(default_factory=asyncio.Event)
    _said: list[JSONObject] = field(default_factory=list)
    _told: bool = False

    @property
    def live(self) -> bool:
        """Whether something may still have to be told with this reply."""
        return not self._told and (bool(self._artifacts) or not self._done.is_set())

    async def wanted(self) -> bool:
        """Whether the newest message asks to have something remembered, once that is judged."""
        if self.status == "pending":
            await self._done.wait()
        return self.score is not None and self.status in ("pass", "memoised", "rate_limited")

    def header(self) -> bytes:
        """The value of `x-usher-memory`."""
        parts: list[str] = [self.status]
        if self.reason:
            parts.append(f"reason={self.reason}")
        if self.injected:
            parts.append(f"injected={self.injected}")
        if self.dropped:
            parts.append(f"dropped={len(self.dropped)}")
        return ";".join(parts).encode()

    def owe(self, artifacts: Sequence[JSONObject]) -> None:
        """What an earlier turn could not tell in time."""
        self._artifacts += [{**artifact, "late": True} for artifact in artifacts]

    def settle(self, outcomes: Sequence[Outcome] = ()) -> None:
        """The run is over; after the reply has gone, the next one will tell of it."""
        told = [o.as_artifact(self.request_id) for o in outcomes if o.told]
        self._done.set()
        if self._told and told and self.late and self.whose:
            self.late(self.whose, told)
        elif not self._told:
            self._artifacts += told

    async def join(self) -> list[JSONObject]:
        """The artifacts that are there, after a short wait; each is handed out once."""
        if not self._done.is_set() and self.join_seconds:
            try:
                async with asyncio.timeout(self.join_seconds):
                    await self._done.wait()
            except TimeoutError:
                pass
        self._told = True
        artifacts, self._artifacts = self._artifacts, []
        self._said += artifacts
        return artifacts

    def said(self) -> list[JSONObject]:
        """What `join` has handed out since the last time."""
        said, self._said = self._said, []
        return said

    def give_back(self) -> None:
        """The reply ended without telling: the user's next one will."""
        self._told = True
        if self._artifacts and self.late and self.whose:
            self.late(self.whose, self._artifacts)
        self._artifacts = []

    def render(self, artifacts: Sequence[JSONObject]) -> bytes:
        """The lines that go before a stream's finish."""
        if not artifacts:
            return b""
        events = render_events(artifacts, self.conversation) if self.attachments else b""
        return render_comments(artifacts) + events

    @staticmethod
    def extend(reply: JSONObject, artifacts: Sequence[JSONObject]) -> JSONObject:
        """A JSON reply with the artifacts."""
        return extend(reply, artifacts) if artifacts else reply

    def describe(self) -> JSONObject:
        """For the turn's line in the ledger: figures and names, never a value."""
        return {
            "status": self.status,
            "reason": self.reason,
            "score": self.score,
            "injected": self.injected,
            "dropped": list(self.dropped),
        }
