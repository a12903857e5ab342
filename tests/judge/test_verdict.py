"""Reading a verdict."""

from proxy.judge.failures import Failure
from proxy.judge.questions import ChoiceAnswer, NoulAnswer, Refused, ScoreAnswer
from proxy.judge.verdict import NOTHING, Verdict


def test_answers_are_read_by_kind() -> None:
    """A missing, a refused and another kind of answer are all unmeasured."""
    verdict = Verdict(
        {
            "yes": NoulAnswer(0.9, "token"),
            "tool": ChoiceAnswer("a"),
            "much": ScoreAnswer(1.5),
            "no": Refused(),
        }
    )
    assert verdict.noul("yes") == 0.9
    assert verdict.choice("tool") == ChoiceAnswer("a")
    assert verdict.score("much") == ScoreAnswer(1.5)
    assert verdict.noul("no") is None
    assert verdict.noul("tool") is None
    assert verdict.choice("yes") is None
    assert verdict.score("absent") is None
    assert verdict.calibration("yes") == "token"
    assert verdict.calibration("no") == verdict.calibration("absent") == "none"


def test_only_a_complete_verdict_is_ok() -> None:
    """A failure says that something is missing."""
    assert NOTHING.ok
    assert not Verdict(failure=Failure.TIMEOUT).ok
