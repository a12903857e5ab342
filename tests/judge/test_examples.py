"""Labelled lines, judged."""

from typing import Any

import orjson
import pytest

from proxy.errors import ConfigError
from proxy.judge.calibrate import Labelled
from proxy.judge.examples import judge_examples, read_examples
from proxy.judge.questions import ChoiceAnswer, NoulAnswer, question_hash
from proxy.judge.wording import load_wordings
from tests.judge.fakes import Fixed, make_judge

pytestmark = pytest.mark.anyio

WORDINGS = load_wordings()


def lines(*rows: Any) -> list[bytes]:
    return [orjson.dumps(row) for row in rows]


async def test_lines_are_judged_by_question() -> None:
    """A state, a line of the gate's sets, a ready probability, and a choice with its options."""
    rows = lines(
        {"question": "memory_request", "state": {"latest": "remember me"}, "label": True},
        {"latest": "thanks", "context": [{"role": "user", "content": "x"}], "label": 0},
        {"question": "memory_request", "probability": 0.4, "label": False},
        {"question": "memory_key", "state": "x", "options": {"a": None}, "label": "a"},
    )
    answers = {
        "memory_request": NoulAnswer(0.9),
        "memory_key": ChoiceAnswer("a", {"a": 0.8, "none_of_these": 0.2}),
    }
    backend = Fixed(answers)
    examples = read_examples([*rows, b""], WORDINGS, "memory_request")
    judged = await judge_examples(make_judge(backend), examples, 1.0)
    assert judged["memory_request"].examples == [
        Labelled(0.9, truth=True),
        Labelled(0.9, truth=False),
        Labelled(0.4, truth=False),
    ]
    assert judged["memory_key"].examples == [Labelled(0.8, truth=True)]
    assert judged["memory_request"].model == "fixed-1"
    noul = WORDINGS["memory_request"].noul()
    assert judged["memory_request"].question_hash == question_hash(noul)
    assert backend.asked[1].state == {
        "latest": "thanks",
        "conversation": [{"role": "user", "content": "x"}],
    }


async def test_what_was_not_answered_is_counted() -> None:
    """And not taken for a no; a label without probabilities measures nothing."""
    rows = lines(
        {"question": "memory_request", "state": "x", "label": True},
        {"question": "memory_key", "state": "x", "options": {"a": None}, "label": "a"},
    )
    judge = make_judge(Fixed({"memory_key": ChoiceAnswer("a")}))
    judged = await judge_examples(judge, read_examples(rows, WORDINGS, None), 1.0)
    assert [one.unanswered for one in judged.values()] == [1, 1]
    assert judged["memory_request"].model is None


@pytest.mark.parametrize(
    "line",
    [
        b"no json",
        b"[]",
        b'{"label": 1, "state": "x"}',
        b'{"question": "nope", "label": 1, "state": "x"}',
        b'{"question": "memory_request", "state": "x"}',
        b'{"question": "memory_request", "label": 1}',
        b'{"question": "memory_request", "label": 1, "state": 3}',
        b'{"question": "memory_request", "label": 1, "probability": 2}',
    ],
)
def test_a_broken_line_is_named(line: bytes) -> None:
    """Before anything is asked."""
    with pytest.raises(ConfigError, match="line 2 is no labelled example"):
        read_examples([b"", line], WORDINGS, None)


def test_an_empty_file_is_a_mistake() -> None:
    """There is nothing to calibrate on."""
    with pytest.raises(ConfigError, match="no labelled example"):
        read_examples([b" "], WORDINGS, None)
