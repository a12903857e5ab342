"""What Usher decided for one request, as values that `explain`, headers and the ledger show."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import lru_cache

from proxy.wire import JSONObject

Recount = Callable[[], tuple[int | None, int | None]]
"""Gives the tokens that were not sent and those that were, None while they are not counted."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One tool's fate: kept, deferred, predicted, discovered or called, and why."""

    tool: str
    fate: str
    reason: str
    score: float | None = None


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """`bypass` names the reason why the request goes up as it came; the rest is for the others.

    `guessed` are the predictions of this turn alone, those of earlier turns left out. `saved` is
    the number of tokens of schema that were not sent, `sent` those that were, both None while
    they are not counted. `catalogue` is the digest of the tools, by which they can be searched.
    `foreseeable` are the tools that a prediction could have shipped, none where none was made.
    """

    bypass: str | None
    tools: int = 0
    kept: int = 0
    deferred: int = 0
    predicted: tuple[str, ...] = ()
    guessed: tuple[str, ...] = ()
    discovered: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    saved: int | None = None
    sent: int | None = None
    delivery: str = "append"
    decisions: tuple[Decision, ...] = field(default=())
    catalogue: str | None = None
    foreseeable: Collection[str] = ()

    @property
    def uncounted(self) -> bool:
        """Whether nobody looked at the tools: what passes unread has an unknown number of them."""
        return not self.tools and self.bypass not in (None, "no tools")

    @property
    def observed(self) -> bool:
        """Whether the plan was made and not followed: the upstream received every tool."""
        return self.bypass == "observe"

    def booked(self) -> "RequestPlan":
        """What became of the plan, for the books: one that was not followed saved nothing."""
        if not self.observed:
            return self
        return replace(
            self,
            kept=self.tools,
            deferred=0,
            predicted=(),
            guessed=(),
            discovered=(),
            foreseeable=(),
            saved=0,
            sent=_add(self.saved, self.sent),
        )

    def summary(self) -> str:
        """The value of `x-usher-tools`."""
        return (
            f"kept={self.kept};deferred={self.deferred}"
            f";predicted={len(self.predicted)};discovered={len(self.discovered)}"
            f"{';mode=observe' if self.observed else ''}"
        )

    def describe(self) -> JSONObject:
        """The plan as JSON, for people and programs that ask what would happen."""
        return {
            "bypass": self.bypass,
            "tools": {
                "sent_by_client": None if self.uncounted else self.tools,
                "kept": None if self.uncounted else self.kept,
                "deferred": self.deferred,
                "predicted": list(self.predicted),
                "discovered": list(self.discovered),
                "called": list(self.called),
            },
            "catalogue": self.catalogue,
            "delivery": self.delivery,
            "tool_tokens": {"before": _add(self.saved, self.sent), "after": self.sent},
            "tokens_saved": self.saved,
            "decisions": [
                {
                    "tool": decision.tool,
                    "fate": decision.fate,
                    "reason": decision.reason,
                    **({} if decision.score is None else {"score": decision.score}),
                }
                for decision in self.decisions
            ],
        }


@lru_cache(maxsize=256)
def pass_as_is(reason: str | None, tools: int = 0) -> RequestPlan:
    """The plan of a request that goes up as it came: one object for all with that reason."""
    return RequestPlan(reason, tools=tools, kept=tools)


def _add(saved: int | None, sent: int | None) -> int | None:
    return None if saved is None or sent is None else saved + sent
