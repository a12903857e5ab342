"""What a question means, and the order in which its options are shown."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.judge.questions import (
    Choice,
    Noul,
    Question,
    Score,
    asked,
    canonical,
    fingerprint,
    flat,
    question_hash,
    shuffled,
)


def test_hash_follows_the_wording_and_nothing_else() -> None:
    """Another wording is another question; a ranker's opinion about its options is not."""
    choice = Choice("Which?", {"a": None, "b": "text"})
    assert question_hash(choice) == question_hash(
        Choice("Which?", {"b": "text", "a": None}, prior={"a": 1.0})
    )
    assert question_hash(choice) != question_hash(Choice("Which one?", {"a": None, "b": "text"}))


def test_kinds_do_not_collide() -> None:
    """The same words as a yes/no, a choice and a rating are three questions."""
    questions: list[Question] = [Noul("x"), Choice("x", {}), Score("x", ())]
    assert len({fingerprint(canonical(question)) for question in questions}) == 3


def test_every_question_asks_something() -> None:
    """A question without instructions gets some, because many servers insist."""
    for question in (Noul(None), Choice(None, {"a": None}), Score(None, ("low",))):
        assert asked(question)
    assert asked(Noul("Really?")) == "Really?"


def test_structure_becomes_json_where_only_text_is_allowed() -> None:
    """Objects are kept readable; nothing becomes nothing."""
    assert flat({"task": "judge"}) == '{"task":"judge"}'
    assert flat("text") == "text"
    assert flat(None) == ""


@given(st.lists(st.text(), unique=True), st.integers(0, 2**64 - 1), st.randoms())
def test_order_depends_on_seed_and_content_only(
    labels: list[str], seed: int, random: st.DataObject
) -> None:
    """However a client orders its tools, a replay shows them in the same order."""
    order = shuffled(labels, seed)
    assert sorted(order) == sorted(labels)
    mixed = list(labels)
    random.shuffle(mixed)  # type: ignore[attr-defined]  # hypothesis hands in a random.Random
    assert shuffled(mixed, seed) == order


def test_none_of_these_stands_last() -> None:
    """The option that means "no other" reads naturally only after the others."""
    assert shuffled(["none", "a", "b"], 1, last="none")[-1] == "none"
