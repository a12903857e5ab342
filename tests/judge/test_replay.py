"""Judgments from a file."""

import pytest

from proxy.errors import ConfigError
from proxy.judge.failures import Failed
from proxy.judge.job import Attempt
from proxy.judge.questions import Choice, ChoiceAnswer, Noul, NoulAnswer, Question, Refused
from proxy.judge.replay import RecordingBackend, ReplayBackend, read_recording
from tests.judge.fakes import Fixed, make_job

pytestmark = pytest.mark.anyio

QUESTIONS: dict[str, Question] = {
    "spam": Noul("Spam?", "yes", "no"),
    "tool": Choice("Which?", {"a": None, "b": "text"}),
}
ANSWERS = {"spam": NoulAnswer(0.9), "tool": ChoiceAnswer("a", {"a": 0.75, "b": 0.25}, 0.5)}


async def test_what_was_recorded_is_replayed() -> None:
    """The same answers, also when the questions come in other requests and under other names."""
    lines: list[bytes] = []
    recorder = RecordingBackend(Fixed(ANSWERS), lines.append)
    assert recorder.answers(QUESTIONS["spam"])
    await recorder.judge(make_job({"latest": "hi"}, QUESTIONS))
    attempts: list[Attempt] = []
    replay = ReplayBackend(read_recording([*lines, b"  "]))
    job = make_job({"latest": "hi"}, {"renamed": QUESTIONS["tool"]}, attempts)
    reading = await replay.judge(job)
    assert reading.answers == {"renamed": ANSWERS["tool"]}
    assert reading.model == "fixed-1"
    assert [attempt.local for attempt in attempts] == [True]


async def test_what_was_not_recorded_is_not_answered() -> None:
    """Another state is another judgment."""
    replay = ReplayBackend({})
    assert replay.answers(QUESTIONS["spam"])
    with pytest.raises(Failed, match="unsupported"):
        await replay.judge(make_job("x", QUESTIONS))


async def test_refusals_are_not_recorded() -> None:
    """The file's dialect has no word for them."""
    lines: list[bytes] = []
    await RecordingBackend(Fixed({"spam": Refused()}), lines.append).judge(
        make_job("x", {"spam": QUESTIONS["spam"]})
    )
    assert lines == []


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"[]",
        b'{"state": "x"}',
        b'{"state": "x", "question": {"type": "box"}, "answer": {}}',
        b'{"state": "x", "question": {"type": "choice"}, "answer": {}}',
    ],
)
def test_a_broken_recording_is_an_error_with_its_line(line: bytes) -> None:
    """At start, not in the middle of a turn."""
    with pytest.raises(ConfigError, match="line 2"):
        read_recording([b"", line])
