"""What a judgment came to: answers by question, and why some or all of them are missing."""

from collections.abc import Mapping

import msgspec

from proxy.judge.failures import Failure
from proxy.judge.questions import (
    Answer,
    Calibration,
    ChoiceAnswer,
    NoulAnswer,
    Refused,
    ScoreAnswer,
)
from proxy.ledger.usage import NO_TOKENS, Tokens


class Verdict(msgspec.Struct, frozen=True):
    """The answers of all backends that were asked; `failure` explains what is missing.

    `models` names which model answered each question; `thresholds` are calibrated ones that hold
    for those models and this wording. `cost_nano_usd` is None when any attempt's
    cost is unknown.
    """

    answers: Mapping[str, Answer] = {}
    failure: Failure | None = None
    models: Mapping[str, str] = {}
    tokens: Tokens = NO_TOKENS
    cost_nano_usd: int | None = 0
    latency_ms: float = 0.0
    retry_after: float | None = None
    thresholds: Mapping[str, float] = {}

    @property
    def ok(self) -> bool:
        """Whether nothing is missing."""
        return self.failure is None

    def noul(self, name: str) -> float | None:
        """The probability of yes; None when it was not measured."""
        answer = self.answers.get(name)
        return answer.probability if isinstance(answer, NoulAnswer) else None

    def choice(self, name: str) -> ChoiceAnswer | None:
        """The answer to a choice, or None."""
        answer = self.answers.get(name)
        return answer if isinstance(answer, ChoiceAnswer) else None

    def score(self, name: str) -> ScoreAnswer | None:
        """The answer to a rating, or None."""
        answer = self.answers.get(name)
        return answer if isinstance(answer, ScoreAnswer) else None

    def calibration(self, name: str) -> Calibration:
        """Where a question's probability comes from."""
        answer = self.answers.get(name)
        return "none" if answer is None or isinstance(answer, Refused) else answer.calibration


NOTHING = Verdict()
