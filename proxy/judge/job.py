"""What a backend is handed: the questions, the time it has, and where to write its attempts."""

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec
import xxhash

from proxy.judge.deadline import Deadline
from proxy.judge.questions import Question, Questions, State
from proxy.judge.reading import Reading


class Purpose(msgspec.Struct, frozen=True):
    """What a judgment is for and whose bill it is on; `context` is the ledger's word."""

    name: str
    request_id: str = ""
    tenant: str = "default"
    key: str = "open"
    user: str | None = None
    round: int = 0
    context: str = "classification"


class Attempt(msgspec.Struct, frozen=True):
    """One call to a judge, however it ended.

    `reading` is None when there was no usable reply. `estimate` is our guess at its input tokens
    when the request was sent; `decisions` says which price fields apply.
    """

    provider: str
    model: str
    outcome: str
    started_at: float
    latency_ms: float
    reading: Reading | None = None
    estimate: int | None = None
    status: int | None = None
    decisions: bool = True
    local: bool = False
    attempt: int = 0


class Job(msgspec.Struct, frozen=True):
    """One judgment for one backend; `hashes` holds every question's fingerprint."""

    state: State
    questions: Questions
    deadline: Deadline
    purpose: Purpose
    state_hash: str
    hashes: Mapping[str, str]
    record: Callable[[Attempt], None]

    def seed(self, name: str) -> int:
        """The option order of a question depends on what is asked about what, on nothing else."""
        return xxhash.xxh3_64_intdigest((self.state_hash + self.hashes[name]).encode())


class Backend(Protocol):
    """Something that answers questions."""

    @property
    def name(self) -> str:
        """Its name in logs and the ledger."""

    @property
    def model(self) -> str:
        """The model it asks for."""

    @property
    def local(self) -> bool:
        """True when it neither costs money nor waits for anybody."""

    def answers(self, question: Question) -> bool:
        """Whether it can answer such a question at all."""

    async def judge(self, job: Job) -> Reading:
        """Answer what it can within the deadline, recording every attempt; raises Failed."""
