"""Questions and states that are too large for a judge."""

import math

import orjson
import pytest

from proxy.judge.fit import (
    KEPT_CHARS,
    NONE_OF_THESE,
    Fitted,
    clip,
    clip_state,
    fit,
    free_label,
    latest_text,
    rank_options,
    restore,
)
from proxy.judge.questions import Choice, ChoiceAnswer, Noul, NoulAnswer, State

MANY = Choice("Which queue?", {f"queue_{i}": f"Tickets about topic {i}" for i in range(40)})


def shown(fitted: Fitted) -> list[str]:
    assert isinstance(fitted.sent, Choice)
    return list(fitted.sent.options)


def test_a_small_choice_is_only_put_in_order() -> None:
    """Nothing is cut, and the order is the seed's."""
    question = Choice("?", {"a": None, "b": None, "c": None})
    orders = {tuple(shown(fit(question, 20, "s", seed))) for seed in range(30)}
    assert {frozenset(order) for order in orders} == {frozenset("abc")}
    assert len(orders) > 1


def test_a_large_choice_keeps_what_our_ranker_likes() -> None:
    """Nineteen options and a way out; the one that the state names is among them."""
    fitted = fit(MANY, 20, {"latest": "a ticket about topic 33"}, 1)
    assert isinstance(fitted.sent, Choice)
    assert len(fitted.sent.options) == 20
    assert "queue_33" in fitted.sent.options
    assert list(fitted.sent.options)[-1] == fitted.added == NONE_OF_THESE
    assert len(fitted.hidden) == 21


def test_none_of_the_shown_means_one_of_the_hidden() -> None:
    """Its mass is shared, the distribution is one over the client's own options again."""
    fitted = fit(MANY, 20, "topic 3", 1)
    weights = dict.fromkeys(shown(fitted), 0.0) | {NONE_OF_THESE: 0.79, "queue_3": 0.21}
    answer = restore(MANY, fitted, ChoiceAnswer(NONE_OF_THESE, weights, 0.7))
    assert isinstance(answer, ChoiceAnswer)
    assert list(answer.probabilities) == list(MANY.options)
    assert math.fsum(answer.probabilities.values()) == pytest.approx(1.0)
    assert answer.label == "queue_3"
    assert answer.confidence is not None
    assert answer.confidence < 0.3


def test_a_question_with_its_own_none_keeps_it() -> None:
    """Then the hidden options simply got nothing."""
    own = Choice("?", {**MANY.options, "no": "no queue"}, none="no")
    fitted = fit(own, 10, "topic 3", 1)
    assert fitted.added is None
    weights = {**dict.fromkeys(shown(fitted), 0.0), "no": 1.0}
    answer = restore(own, fitted, ChoiceAnswer("no", weights, 1.0))
    assert answer == ChoiceAnswer("no", {**dict.fromkeys(own.options, 0.0), "no": 1.0}, 1.0)


def test_a_prior_decides_what_is_kept() -> None:
    """The ranker that already ran is not run again."""
    priced = Choice("?", MANY.options, prior={"queue_39": 5.0, "queue_0": 1.0})
    kept = fit(priced, 3, "topic 3", 1).sent
    assert isinstance(kept, Choice)
    assert set(kept.options) == {"queue_39", "queue_0", NONE_OF_THESE}
    assert rank_options(priced, "anything") == {"queue_39": 5.0, "queue_0": 1.0}


def test_equal_labels_with_other_texts_are_ranked_by_their_own() -> None:
    """A ranker that is kept belongs to one wording of a choice, of any state."""
    work = Choice("Which?", {"a": "invoices and taxes", "b": "holidays"})
    swapped = Choice("Which?", {"a": "holidays", "b": "invoices and taxes"})
    for question, best in ((work, "a"), (swapped, "b"), (work, "a")):
        assert list(rank_options(question, "pay my taxes")) == [best]
    assert list(rank_options(work, "book holidays")) == ["b"]
    long = Choice("Which?", {**work.options, "c": "x " * KEPT_CHARS})
    assert list(rank_options(long, "pay my taxes")) == ["a"]


def test_other_questions_and_answers_pass() -> None:
    """Only choices have too many options, and unmeasured ones have nothing to restore."""
    noul = Noul("?")
    assert fit(noul, 2, "s", 1).sent is noul
    assert restore(noul, fit(noul, 2, "s", 1), NoulAnswer(0.5)) == NoulAnswer(0.5)
    bare = ChoiceAnswer("queue_1")
    assert restore(MANY, fit(MANY, 20, "s", 1), bare) is bare


def test_clipping_keeps_both_ends() -> None:
    """What somebody wants stands at either end more often than between."""
    text = "start " + "x" * 500 + " end"
    assert clip(text, 100).startswith("start")
    assert clip(text, 100).endswith(" end")
    assert clip("short", 100) == "short"


@pytest.mark.parametrize(
    "state",
    ["x" * 9_000, {"a": "y" * 9_000, "n": 3}, [{"t": "z" * 700} for _ in range(40)]],
)
def test_states_are_cut_to_size(state: State) -> None:
    """Texts, objects and lists; a state that fits is left alone."""
    clipped = clip_state(state, 2_000)
    assert len(orjson.dumps(clipped)) <= 2_050
    assert clip_state(clipped, 3_000) is clipped


def test_what_is_wanted_now() -> None:
    """The newest message where a state has one, else everything."""
    assert latest_text({"latest": "this", "conversation": []}) == "this"
    assert latest_text({"request": "this"}) == "this"
    assert latest_text({"other": 1}) == '{"other":1}'


def test_none_needs_a_name_of_its_own() -> None:
    """An option that is called like it keeps its name."""
    assert free_label({NONE_OF_THESE: 1}) != NONE_OF_THESE
