"""What one reply of a judge said: answers, the reasons for missing ones, and its usage."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from proxy.judge.questions import Answer, Question, Questions
from proxy.judge.validate import BadAnswer
from proxy.ledger.usage import NO_TOKENS, Tokens
from proxy.wire import JSON


class Reading(msgspec.Struct, frozen=True):
    """A decoded reply; `problems` says per question which rule its answer broke."""

    answers: Mapping[str, Answer]
    problems: Mapping[str, str] = {}
    model: str | None = None
    tokens: Tokens = NO_TOKENS
    provider_request_id: str | None = None

    @property
    def outcome(self) -> str:
        """The ledger's word for it."""
        if not self.answers:
            return "malformed"
        return "partial" if self.problems else "ok"


def read_each(
    questions: Questions, read: Callable[[str, Question], Answer]
) -> tuple[dict[str, Answer], dict[str, str]]:
    """Read every question's answer by itself: the good ones, and why the others are not."""
    good: dict[str, Answer] = {}
    problems: dict[str, str] = {}
    for name, question in questions.items():
        try:
            good[name] = read(name, question)
        except BadAnswer as reason:
            problems[name] = str(reason)
    return good, problems


def text_or_none(value: JSON) -> str | None:
    """A string as it is, anything else as unknown, half a surrogate pair too: JSON has none."""
    if not isinstance(value, str) or any("\ud800" <= char <= "\udfff" for char in value):
        return None
    return value


def merge(readings: Sequence[Reading]) -> Reading:
    """Several replies to one judgment as one; tokens are summed where they are known."""
    if len(readings) == 1:
        return readings[0]
    answers = {name: answer for reading in readings for name, answer in reading.answers.items()}
    problems = {name: why for reading in readings for name, why in reading.problems.items()}
    models = [reading.model for reading in readings if reading.model is not None]
    return Reading(
        answers=answers,
        problems={name: why for name, why in problems.items() if name not in answers},
        model=models[0] if models else None,
        tokens=Tokens(
            prompt=_sum([reading.tokens.prompt for reading in readings]),
            cached=_sum([reading.tokens.cached for reading in readings]),
            completion=_sum([reading.tokens.completion for reading in readings]),
        ),
    )


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
