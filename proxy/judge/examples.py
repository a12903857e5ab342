"""Labelled JSON lines in; what the judge says about each of them, ready for calibration, out.

A line names its question and truth: `{"question", "state", "label"}`, with `options` for a choice,
or `probability` instead of the state when it was judged before. A line of the memory gate's sets
(`latest`, `context`, `label`) is one, too.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import orjson

from proxy.errors import ConfigError
from proxy.judge.ask import Judge
from proxy.judge.calibrate import Labelled
from proxy.judge.deadline import Deadline
from proxy.judge.job import Purpose
from proxy.judge.questions import Question, State, question_hash
from proxy.judge.verdict import Verdict
from proxy.judge.wording import Wordings
from proxy.wire import JSON, JSONObject

AT_ONCE = 8
PURPOSE = Purpose("calibrate")


@dataclass(frozen=True, slots=True)
class Example:
    """One line: a question, its truth, and either a state to judge or a probability."""

    name: str
    truth: bool | str
    question: Question
    state: State | None = None
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """A question's examples with what was said about them, and who said it."""

    examples: Sequence[Labelled]
    unanswered: int
    question_hash: str
    model: str | None


def read_examples(lines: Iterable[bytes], wordings: Wordings, default: str | None) -> list[Example]:
    """Read a file's lines; `default` is the question of lines that name none. Or ConfigError."""
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(_read_example(orjson.loads(line), wordings, default))
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError) as error:
            why = f": {error}" if isinstance(error, KeyError) else ""
            raise ConfigError(f"line {number} is no labelled example{why}") from None
    if not found:
        raise ConfigError("there is no labelled example")
    return found


async def judge_examples(
    judge: Judge, examples: Sequence[Example], seconds: float
) -> Mapping[str, Judged]:
    """Judge every example; by question."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def ask(example: Example) -> Verdict | None:
        if example.state is None:
            return None
        async with gate:
            questions = {example.name: example.question}
            return await judge.decide(example.state, questions, Deadline.after(seconds), PURPOSE)

    verdicts = await asyncio.gather(*(ask(example) for example in examples))
    pairs = list(zip(examples, verdicts, strict=True))
    names = dict.fromkeys(example.name for example in examples)
    return {name: _collect(name, pairs) for name in names}


def _collect(name: str, pairs: Sequence[tuple[Example, Verdict | None]]) -> Judged:
    own = [(example, verdict) for example, verdict in pairs if example.name == name]
    labelled = [_label(example, verdict) for example, verdict in own]
    models = [v.models[name] for _, v in own if v is not None and name in v.models]
    return Judged(
        examples=[one for one in labelled if one is not None],
        unanswered=sum(one is None for one in labelled),
        question_hash=question_hash(own[0][0].question),
        model=models[0] if models else None,
    )


def _label(example: Example, verdict: Verdict | None) -> Labelled | None:
    if verdict is None:
        return Labelled(example.probability or 0.0, bool(example.truth))
    noul = verdict.noul(example.name)
    if noul is not None:
        return Labelled(noul, bool(example.truth))
    choice = verdict.choice(example.name)
    if choice is None or not choice.probabilities:
        return None
    return Labelled(choice.probabilities[choice.label], choice.label == example.truth)


def _read_example(row: JSONObject, wordings: Wordings, default: str | None) -> Example:
    name = row.get("question", default)
    if name is None:
        raise KeyError("question")
    wording = wordings[name]
    question = (
        wording.noul(embedded=name)
        if wording.type == "noul"
        else wording.choice(row.get("options"))
    )
    truth = row["label"]
    if "probability" in row:
        return Example(name, truth, question, probability=_probability(row["probability"]))
    return Example(name, truth, question, state=_state(row))


def _state(row: JSONObject) -> State:
    if "latest" in row:
        return {"latest": row["latest"], "conversation": row.get("context", [])}
    state: JSON = row["state"]
    if not isinstance(state, str | dict | list):
        raise TypeError("state")
    return state


def _probability(value: JSON) -> float:
    if isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError("probability")
    return float(value)
