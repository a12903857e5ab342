"""The judge inside: our rankers answer choices, a small model answers the question it was made for.

No key, no network. Its numbers order things well and are no probabilities, so a choice has no
confidence here.
"""

import math
import time
from collections.abc import Callable, Mapping

from proxy.judge.failures import Failed, Failure
from proxy.judge.fit import rank_options
from proxy.judge.job import Attempt, Job
from proxy.judge.questions import Answer, Choice, ChoiceAnswer, Noul, NoulAnswer, Question, State
from proxy.judge.reading import Reading

Model = Callable[[State], float | None]
"""A built-in yes/no model: the probability of yes for a state, None when it cannot tell."""

SHARPNESS = 6.0
"""How fast a label's weight falls with its distance from the best score."""
NONE_WEIGHT = math.exp(-SHARPNESS / 2)
"""A "none" option weighs as much as a label that scores half of the best one."""


class EmbeddedBackend:
    """Answers choices by ranking and the yes/no questions that it has a model for."""

    name = "embedded"
    model = "embedded"
    local = True

    def __init__(self, models: Mapping[str, Model]) -> None:
        self._models = models

    def answers(self, question: Question) -> bool:
        """A choice always; a yes/no only when it names a model that is here."""
        if isinstance(question, Noul):
            return question.embedded in self._models
        return isinstance(question, Choice)

    async def judge(self, job: Job) -> Reading:
        """Answer at once; raises Failed when nothing could be answered."""
        started, begun = time.time(), time.perf_counter()
        found = {name: self._answer(q, job.state) for name, q in job.questions.items()}
        answers = {name: answer for name, answer in found.items() if answer is not None}
        problems = {name: "no model can tell" for name, a in found.items() if a is None}
        reading = Reading(answers, problems, self.model)
        elapsed = (time.perf_counter() - begun) * 1000
        job.record(
            Attempt(self.name, self.model, reading.outcome, started, elapsed, reading, local=True)
        )
        if not answers:
            raise Failed(Failure.UNSUPPORTED)
        return reading

    def _answer(self, question: Question, state: State) -> Answer | None:
        if isinstance(question, Choice):
            return rank_choice(question, state)
        assert isinstance(question, Noul)
        model = self._models[question.embedded or ""]
        probability = model(state)
        return None if probability is None else NoulAnswer(probability, "embedded")


def rank_choice(question: Choice, state: State) -> ChoiceAnswer:
    """The choice our ranker makes; without any match "none" wins, or everything is alike."""
    scores = rank_options(question, state)
    top = max(scores.values(), default=0.0)
    weights = dict.fromkeys(question.options, 0.0)
    if top > 0:
        weights |= {k: math.exp(SHARPNESS * (s / top - 1)) for k, s in scores.items() if s > 0}
    if question.none is not None:
        weights[question.none] = NONE_WEIGHT if top > 0 else 1.0
    total = math.fsum(weights.values())
    count = len(weights)
    shares = {k: w / total if total else 1 / count for k, w in weights.items()}
    return ChoiceAnswer(max(shares, key=shares.__getitem__), shares, None, "embedded")
