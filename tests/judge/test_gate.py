"""The memory gate's reading of a verdict."""

from msgspec.structs import replace

from proxy.judge.failures import Failure
from proxy.judge.gate import read_gate
from proxy.judge.questions import Answer, ChoiceAnswer, NoulAnswer
from proxy.judge.verdict import Verdict
from proxy.judge_settings import MemoryGate

RULE = MemoryGate()
KEYS = ("work_context", "location")


def verdict(request: float, **others: Answer) -> Verdict:
    return Verdict({"memory_request": NoulAnswer(request, "token"), **others})


def test_requests_pass_and_the_rest_is_skipped() -> None:
    """The seed's scores against its threshold of 0.5."""
    for score in (0.93, 0.98, 0.97, 0.94, 0.5):
        assert read_gate(verdict(score), RULE).status == "pass"
    for score in (0.39, 0.45, 0.47, 0.05, 0.01):
        assert not read_gate(verdict(score), RULE).runs


def test_the_threshold_is_the_operators_else_the_backends() -> None:
    """A calibrated one applies where none was set."""
    assert read_gate(verdict(0.45), RULE, (), 0.4).runs
    strict = RULE.model_copy(update={"threshold": 0.6})
    assert not read_gate(verdict(0.55), strict, (), 0.4).runs


def test_failure_runs_the_agent() -> None:
    """A missed memory is worse than a small call."""
    gated = read_gate(Verdict(failure=Failure.TIMEOUT), RULE)
    assert (gated.status, gated.runs, gated.probability) == ("error_pass", True, None)


def test_hints_are_given_only_when_sure() -> None:
    """A low-confidence key is dropped rather than suggested."""
    key = ChoiceAnswer("location", {"location": 0.8, "work_context": 0.2})
    gated = read_gate(
        verdict(0.9, memory_key=key, memory_update=NoulAnswer(0.7), memory_forget=NoulAnswer(0.1)),
        RULE,
        KEYS,
    )
    assert (gated.key, gated.update, gated.forget) == ("location", True, False)
    assert gated.calibration == "token"
    unsure = ChoiceAnswer("location", {"location": 0.4, "work_context": 0.6})
    assert read_gate(verdict(0.9, memory_key=unsure), RULE, KEYS).key is None
    none = ChoiceAnswer("none_of_these", {"none_of_these": 0.9})
    assert read_gate(verdict(0.9, memory_key=none), RULE, KEYS).key is None
    bare = ChoiceAnswer("location")
    assert read_gate(verdict(0.9, memory_key=bare), RULE, KEYS).key is None
    assert read_gate(verdict(0.9), RULE, KEYS).update is None


def test_a_calibrated_threshold_applies() -> None:
    """Before the default and after the operator's own."""
    calibrated = replace(verdict(0.45), thresholds={"memory_request": 0.42})
    assert read_gate(calibrated, RULE).runs
    assert not read_gate(calibrated, RULE.model_copy(update={"threshold": 0.5})).runs
