"""Recorded answers in, the same answers out: judgments without a model, for tests and evaluations.

A recording is a file of JSON lines, one question each, so that it does not matter which questions
share a request: `{"state", "question", "answer", "model"}` in System One's words.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import orjson

from proxy.errors import ConfigError
from proxy.judge.failures import Failed, Failure
from proxy.judge.job import Attempt, Backend, Job
from proxy.judge.questions import Question, canonical, fingerprint
from proxy.judge.reading import Reading
from proxy.judge.systemone import decode, decode_question, encode_answer, encode_question
from proxy.wire import JSON, JSONObject


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded answer as it stood on the wire."""

    answer: JSONObject
    model: str | None


Recording = Mapping[str, Recorded]


def read_recording(lines: Iterable[bytes]) -> Recording:
    """Index a recording's lines by what was asked; raises ConfigError naming a broken line."""
    found: dict[str, Recorded] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = orjson.loads(line)
            question = decode_question(row["question"])
            key = fingerprint(row["state"], canonical(question))
            found[key] = Recorded(row["answer"], row.get("model"))
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            raise ConfigError(f"line {number} of the recording is no recorded answer") from None
    return found


class ReplayBackend:
    """Answers from a recording."""

    name = "replay"
    model = "replay"
    local = True

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def answers(self, question: Question) -> bool:  # noqa: ARG002 - the Protocol's
        """Whatever was recorded."""
        return True

    async def judge(self, job: Job) -> Reading:
        """Look everything up; raises Failed when nothing was recorded."""
        found = {}
        for name, question in job.questions.items():
            recorded = self._recording.get(fingerprint(job.state, canonical(question)))
            if recorded is not None:
                found[name] = recorded
        answers = {name: recorded.answer for name, recorded in found.items()}
        models = [recorded.model for recorded in found.values() if recorded.model]
        body = {"model": models[0] if models else self.model, "answers": answers}
        reading = decode(body, job.questions)
        job.record(
            Attempt(self.name, self.model, reading.outcome, time.time(), 0.0, reading, local=True)
        )
        if not reading.answers:
            raise Failed(Failure.UNSUPPORTED)
        return reading


class RecordingBackend:
    """Another backend whose answers are written down on the way."""

    def __init__(self, inner: Backend, write: Callable[[bytes], None]) -> None:
        self._inner = inner
        self._write = write
        self.name, self.model, self.local = inner.name, inner.model, inner.local

    def answers(self, question: Question) -> bool:
        """What the inner one answers."""
        return self._inner.answers(question)

    async def judge(self, job: Job) -> Reading:
        """Ask the inner one and write one line per answer; raises Failed."""
        reading = await self._inner.judge(job)
        for name, answer in reading.answers.items():
            question = job.questions[name]
            encoded = encode_answer(question, answer)
            if encoded is not None:
                line: JSON = {
                    "state": job.state,
                    "question": encode_question(question),
                    "answer": encoded,
                    "model": reading.model,
                }
                self._write(orjson.dumps(line) + b"\n")
        return reading
