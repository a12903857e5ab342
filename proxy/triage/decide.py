"""Candidates come in; one judgment each, asked for in one request, goes out as rulings."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from proxy.judge.ask import Judge
from proxy.judge.deadline import Deadline
from proxy.judge.fit import clip
from proxy.judge.job import Purpose
from proxy.judge.questions import Choice, ChoiceAnswer
from proxy.judge.wording import Wording
from proxy.tools.smalltalk import is_small_talk
from proxy.triage.candidates import Candidate
from proxy.triage.view import find_constraints, show_unit
from proxy.triage_settings import Triage
from proxy.wire import JSONObject

QUESTION = "triage_action"
NEWEST_CHARS = 2_000
CLEARED_CHARS = 1_000
"""The built-in rules clear tool results from this size."""

Action = Literal["keep", "compress", "drop", "clear"]


@dataclass(frozen=True, slots=True)
class Ruling:
    """What happens to one unit: what was suggested, how sure, what it took, what came of it."""

    candidate: Candidate
    suggestion: str
    probability: float | None
    threshold: float | None
    outcome: Action
    reason: str = ""

    def describe(self, tokens: int) -> JSONObject:
        """For the audit: figures and reasons, none of the conversation's words."""
        return {
            "unit": self.candidate.unit.number,
            "kind": self.candidate.unit.kind,
            "tokens": tokens,
            "suggestion": self.suggestion,
            "probability": self.probability,
            "threshold": self.threshold,
            "outcome": self.outcome,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Ruled:
    """The rulings; `failure` is why there are none."""

    rulings: Sequence[Ruling] = field(default=())
    failure: str | None = None


class Decider(Protocol):
    """Whoever decides; replaceable, and no writer."""

    async def decide(self, candidates: Sequence[Candidate], newest: str, purpose: Purpose) -> Ruled:
        """A ruling for every candidate, or why there is none; never raises."""


class JudgedDecider:
    """Asks the judge: a choice per unit, all in one request.

    An answer of what is built in does not count: it ranks words, and a wrong drop is worse than a
    long prompt.
    """

    def __init__(self, judge: Judge, wording: Wording, settings: Triage) -> None:
        self._judge = judge
        self._wording = wording
        self._settings = settings

    async def decide(self, candidates: Sequence[Candidate], newest: str, purpose: Purpose) -> Ruled:
        """The rulings of the judge."""
        batches = self._split(candidates)
        tasks: list[asyncio.Task[Ruled]] = []
        async with asyncio.TaskGroup() as group:
            tasks.extend(group.create_task(self._ask(b, newest, purpose)) for b in batches)
        ruled = [task.result() for task in tasks]
        rulings = [ruling for each in ruled for ruling in each.rulings]
        failure = next((each.failure for each in ruled if each.failure), None)
        return Ruled(rulings, None if rulings else failure or "nothing to judge")

    def _split(self, candidates: Sequence[Candidate]) -> list[Sequence[Candidate]]:
        """One request as long as the judge can read it all at once."""
        size = max(1, self._settings.state_chars // self._settings.view_chars)
        return [candidates[start : start + size] for start in range(0, len(candidates), size)]

    async def _ask(self, candidates: Sequence[Candidate], newest: str, purpose: Purpose) -> Ruled:
        asked = {f"unit_{candidate.unit.number}": candidate for candidate in candidates}
        most = self._settings.view_chars
        state: JSONObject = {"newest": clip(newest, NEWEST_CHARS)}
        state.update({name: show_unit(c.messages, most) for name, c in asked.items()})
        questions = {name: self._question(name) for name in asked}
        deadline = Deadline.after(self._settings.timeout_ms / 1000)
        verdict = await self._judge.decide(state, questions, deadline, purpose)
        answers = {name: verdict.choice(name) for name in asked}
        counted = {
            name: answer
            for name, answer in answers.items()
            if answer is not None and answer.calibration != "embedded"
        }
        if not counted:
            return Ruled(failure=f"judge: {verdict.failure or 'only what is built in answered'}")
        return Ruled([self._rule(c, counted.get(name)) for name, c in asked.items()])

    def _question(self, name: str) -> Choice:
        """The wording with the unit's own name, since all units are in one state."""
        instructions = self._wording.instructions.replace("`unit`", f"`{name}`")
        return self._wording.model_copy(update={"instructions": instructions}).choice()

    def _rule(self, candidate: Candidate, answer: ChoiceAnswer | None) -> Ruling:
        if answer is None:
            return Ruling(candidate, "none", None, None, "keep", "no answer")
        label = answer.label
        probability = answer.probabilities.get(label)
        thresholds: Mapping[str, float] = {
            "drop": self._settings.drop_from,
            "compress": self._settings.compress_from,
        }
        threshold = thresholds.get(label)
        if threshold is None:
            return Ruling(candidate, label, probability, None, "keep", "suggested")
        if probability is None or probability < threshold:
            reason = "unmeasured" if probability is None else "below threshold"
            return Ruling(candidate, label, probability, threshold, "keep", reason)
        outcome: Action = "drop" if label == "drop" else "compress"
        if outcome == "drop" and find_constraints(candidate.messages):
            return Ruling(
                candidate, label, probability, threshold, "compress", "states a constraint"
            )
        return Ruling(candidate, label, probability, threshold, outcome, "suggested")


class BuiltInDecider:
    """Decides without any model, where an operator asks for that.

    Small talk goes, old tool results are cleared and can be recalled, everything else stays.
    """

    async def decide(
        self,
        candidates: Sequence[Candidate],
        newest: str,  # noqa: ARG002 - the Protocol's
        purpose: Purpose,  # noqa: ARG002 - the Protocol's
    ) -> Ruled:
        """The rulings of two rules."""
        return Ruled([_rule_by_form(candidate) for candidate in candidates])


def _rule_by_form(candidate: Candidate) -> Ruling:
    messages = candidate.messages
    if candidate.unit.kind == "step":
        chars = sum(len(m["content"]) for m in messages if m["role"] == "tool")
        outcome: Action = "clear" if chars >= CLEARED_CHARS else "keep"
        return Ruling(candidate, outcome, None, None, outcome, "built in")
    said = [message["content"] for message in messages if message["role"] == "user"]
    gone = bool(said) and all(is_small_talk(text) for text in said)
    outcome = "drop" if gone else "keep"
    return Ruling(candidate, outcome, None, None, outcome, "built in")
