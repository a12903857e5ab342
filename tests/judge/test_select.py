"""The selection rule of the seed."""

import pytest

from proxy.judge.failures import Failure
from proxy.judge.fused import fits_name
from proxy.judge.questions import Answer, ChoiceAnswer, NoulAnswer, Refused
from proxy.judge.select import Offer, measured, select_tools
from proxy.judge.verdict import Verdict
from proxy.judge_settings import ToolSelection

TOOLS = [f"t{i}" for i in range(12)]
RULE = ToolSelection(enabled=True)
OFFER = Offer(TOOLS, named=(), ranked=("t9", "t10"))


def verdict(
    probabilities: dict[str, float], confidence: float | None = 0.9, needs: float | None = 0.9
) -> Verdict:
    answers: dict[str, Answer] = {
        "tool": ChoiceAnswer(
            max(probabilities, key=lambda k: probabilities[k]), probabilities, confidence
        )
    }
    if needs is not None:
        answers["needs_tool"] = NoulAnswer(needs)
    return Verdict(answers)


FALLING = {f"t{i}": 0.20 - i * 0.01 for i in range(12)}


def test_no_tool_needed_leaves_only_named_ones() -> None:
    """A thank-you that scored 0.09, below 0.15, ships nothing else."""
    offer = Offer(TOOLS, named=("t3",), ranked=("t9",))
    found = select_tools(verdict(FALLING, needs=0.09), offer, RULE)
    assert (found.names, found.reason, found.needs_tool) == (("t3",), "no_tool_needed", 0.09)
    assert select_tools(verdict(FALLING, needs=0.15), offer, RULE).reason == "judged"


def test_the_best_five_by_probability() -> None:
    """And nothing below the minimum probability, however short the list."""
    assert select_tools(verdict(FALLING), OFFER, RULE).names == ("t0", "t1", "t2", "t3", "t4")
    steep = {"t0": 0.9, "t1": 0.06, "t2": 0.04}
    assert select_tools(verdict(steep), OFFER, RULE).names == ("t0", "t1")


@pytest.mark.item("prediction/judge-null-confidence")
@pytest.mark.parametrize("confidence", [0.4, 0.37, 0.0, None])
def test_an_unsure_choice_widens(confidence: float | None) -> None:
    """At the boundary, below it, and when confidence is unmeasured: three more."""
    found = select_tools(verdict(FALLING, confidence), OFFER, RULE)
    assert (len(found.names), found.reason) == (8, "widened")
    assert len(select_tools(verdict(FALLING, 0.41), OFFER, RULE).names) == 5


def test_named_tools_do_not_use_up_the_shortlist_and_stop_at_it() -> None:
    """Seven named tools are five, and five more are chosen."""
    named = ("t11", "t10", "t9", "t8", "t7", "t6", "t5")
    found = select_tools(verdict(FALLING), Offer(TOOLS, named, ()), RULE)
    assert found.named == named[:5]
    assert found.names == (*named[:5], "t0", "t1", "t2", "t3", "t4")
    off = RULE.model_copy(update={"surface_named": False})
    assert select_tools(verdict(FALLING), Offer(TOOLS, named, ()), off).named == ()


@pytest.mark.item("prediction/judge-no-match")
def test_none_of_these_is_no_tool() -> None:
    """Nor is anything else that was not offered."""
    found = select_tools(verdict({"none_of_these": 0.8, "t1": 0.2}), OFFER, RULE)
    assert found.names == ("t1",)


@pytest.mark.parametrize(
    "unmeasured",
    [Verdict(), Verdict({"tool": ChoiceAnswer("t1", {"t1": 1.0}, None, "embedded")})],
)
def test_without_a_judge_the_ranker_decides(unmeasured: Verdict) -> None:
    """Named tools first, then its shortlist: a failure costs no tool."""
    found = select_tools(unmeasured, Offer(TOOLS, ("t3",), ("t9", "t3")), RULE)
    assert (found.names, found.reason) == (("t3", "t9"), "ranker")


def test_a_label_without_probabilities_leads_the_rankers_list() -> None:
    """Nothing was measured, so nothing is cut."""
    found = select_tools(Verdict({"tool": ChoiceAnswer("t1")}), OFFER, RULE)
    assert (found.names, found.reason) == (("t1", "t9", "t10"), "widened")
    none = select_tools(Verdict({"tool": ChoiceAnswer("none_of_these")}), OFFER, RULE)
    assert none.names == ("t9", "t10")


def test_one_question_per_tool() -> None:
    """Two tools that are both needed do not split anything."""
    rule = RULE.model_copy(update={"mode": "per_tool", "min_probability": 0.5})
    answers: dict[str, Answer] = {
        fits_name("t1"): NoulAnswer(0.9),
        fits_name("t2"): NoulAnswer(0.95),
        fits_name("t3"): NoulAnswer(0.1),
    }
    found = select_tools(Verdict(answers), OFFER, rule)
    assert (found.names, found.reason) == (("t2", "t1"), "judged")
    assert select_tools(Verdict(), OFFER, rule).reason == "ranker"


def test_a_calibrated_threshold_applies() -> None:
    """Where the operator set none of their own."""
    found = Verdict({"needs_tool": NoulAnswer(0.3, "native")}, thresholds={"needs_tool": 0.4})
    offer = Offer(["a"], [], ["a"])
    assert select_tools(found, offer, ToolSelection()).reason == "no_tool_needed"
    own = ToolSelection(needs_tool_below=0.15)
    assert select_tools(found, offer, own).reason == "ranker"


def test_what_counts_as_measured() -> None:
    """A word about tools by a judge from outside, whatever became of the other questions."""
    label = ChoiceAnswer("a", {"a": 1.0}, None, "native")
    assert measured(Verdict({"tool": label}, Failure.MALFORMED))
    assert measured(Verdict({"tool_fits.a": NoulAnswer(0.3, "token")}))
    assert not measured(Verdict({"memory_request": NoulAnswer(0.9, "native")}))
    assert not measured(Verdict({"tool": ChoiceAnswer("a", {"a": 1.0}, None, "embedded")}))
    assert not measured(Verdict({"needs_tool": Refused()}))
