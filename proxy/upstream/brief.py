"""What a turn's rounds know from the start."""

from dataclasses import dataclass
from typing import Protocol

from proxy.plan.envelope import Envelope
from proxy.settings import Deferral
from proxy.tools.arrange import Arrangement
from proxy.tools.choice import Choice
from proxy.tools.toolbox import Toolbox


class Recall(Protocol):
    """A tool of ours that gives back what was taken out of the history; `raw` is its JSON."""

    name: str
    raw: bytes

    def answer(self, arguments: str) -> str:
        """The text of its result."""


@dataclass(frozen=True, slots=True)
class Brief:
    """The facts of a turn that do not change between its rounds.

    `messages` is the raw array with parked rounds woven in; `ids` are the call ids it uses.
    `sequential` says that the client takes one call at a time; `hold_text` keeps the text of
    hidden rounds from it.
    """

    envelope: Envelope
    toolbox: Toolbox
    arrangement: Arrangement
    choice: Choice
    settings: Deferral
    messages: bytes
    ids: frozenset[str]
    stream: bool
    ask_usage: bool
    sequential: bool = False
    model: str | None = None
    hold_text: bool = False
    recall: Recall | None = None
