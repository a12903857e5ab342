"""Histories that are read again: the same conversation, at a fraction of the work."""

import json
from collections.abc import Sequence

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.triage.history import SHORT, Histories
from proxy.triage.units import Conversation
from proxy.wire import JSONObject
from tests.triage.talk import said, step, user

LONG = "Many words about something that was long ago. " * 20


def _system(text: str) -> JSONObject:
    return {"role": "system", "content": text}


def _talk(turns: int, system: str = "Monday") -> list[JSONObject]:
    messages = [_system(system)]
    for turn in range(turns):
        messages += [user(f"{turn} {LONG}"), *step(turn, LONG, 1 + turn % 3), said(f"Done {turn}.")]
    return messages


def _read(histories: Histories, raw: bytes, who: str | None = None) -> Conversation:
    found = histories.read(raw, "default", who)
    assert found is not None
    return found


def _same(known: Conversation, raw: bytes, who: str | None = None) -> bool:
    """Whether it is what a gateway makes of these bytes that has not seen anything before."""
    fresh = _read(Histories(seed=1), raw, who)
    items = [orjson.loads(memoryview(known.items[at])) for at in range(len(known.items))]
    return (
        known.chain == fresh.chain
        and known.facts == fresh.facts
        and known.digests == fresh.digests
        and known.lead == fresh.lead
        and items == orjson.loads(raw)
    )


def _reads(histories: Histories, messages: Sequence[JSONObject]) -> bool:
    raw = orjson.dumps(messages)
    return _same(_read(histories, raw), raw)


def test_a_longer_history_is_the_same_as_one_read_afresh() -> None:
    """Whatever follows what is known: more, another end, the same again."""
    histories = Histories(seed=1)
    messages = _talk(12)
    longer = [*messages, user("Two"), *step(50), *step(51), said("Well."), user("Three")]
    for history in (messages, longer, [*longer[:-1], user("Other")], messages, longer[:30]):
        assert _reads(histories, history)


def test_a_dated_system_prompt_does_not_hide_what_is_known() -> None:
    """Of any length, and without one as well."""
    histories = Histories(seed=1)
    for date in ("Monday", "A long Tuesday " * 30, ""):
        assert _reads(histories, _talk(12, date))
    assert _reads(histories, _talk(12)[1:])


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,\n  ", ":\t")])
def test_every_way_to_write_arrays(separators: tuple[str, str]) -> None:
    """Items stand where they stand in the client's own bytes."""
    histories = Histories(seed=1)
    for turns in (8, 9, 12):
        raw = json.dumps(_talk(turns), separators=separators).encode()
        assert _same(_read(histories, raw), raw)


def test_uneven_gaps_are_read_as_a_whole() -> None:
    """By hand-made clients; also when only the newest part is uneven."""
    histories = Histories(seed=1)
    raws = [orjson.dumps(message) for message in _talk(12)]
    even = b"[" + b",".join(raws) + b"]"
    uneven = b"[ " + b",".join(raws[:-1]) + b" , " + raws[-1] + b"\n]"
    for raw in (even, uneven, even, uneven):
        assert _same(_read(histories, raw), raw)


def test_what_stands_in_front_of_the_first_user_message_counts() -> None:
    """A greeting by the assistant is part of the history, and is not skipped."""
    histories = Histories(seed=1)
    for greeting in ("Hello", "Welcome"):
        messages = [_system("x"), said(greeting), *_talk(12)[1:]]
        assert _reads(histories, messages)


def test_what_looks_like_a_message_in_a_message_is_none() -> None:
    """Neither in a member of a system message nor in its text."""
    histories = Histories(seed=1)
    inner = {"role": "system", "content": 'x {"role":"user"', "more": [{"role": "user"}]}
    messages = [inner, *_talk(12)[1:]]
    for _ in range(2):
        assert _reads(histories, messages)


def test_tenants_and_users_are_apart() -> None:
    """What is known of one says nothing of another."""
    histories = Histories(seed=1)
    raw = orjson.dumps(_talk(12))
    ann, bob = (_read(histories, raw, who) for who in ("ann", "bob"))
    assert ann.head != bob.head
    assert _same(ann, raw, "ann")
    assert _same(bob, raw, "bob")
    other = histories.read(raw, "other", "ann")
    assert other is not None
    assert other.digests != ann.digests


def test_only_so_much_is_kept() -> None:
    """And what has left is read again."""
    histories = Histories(most=4, most_known=60, seed=1)
    talks = [_talk(12, "x"), [_system("x"), user("Other"), *_talk(12)[2:]]]
    for _ in range(2):
        for messages in talks:
            assert _reads(histories, messages)


@pytest.mark.parametrize("raw", [
    b"null", b"[1]", b'[{"content":"x"}]', b"{}",
    b'[{"role":"user","content":"' + b"x" * SHORT + b'"},1]',
])  # fmt: skip
def test_what_is_no_conversation_is_left(raw: bytes) -> None:
    """Nothing is guessed about malformed messages."""
    assert Histories().read(raw, "default", None) is None


@settings(max_examples=300, deadline=None)
@given(
    cuts=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 3)), min_size=2, max_size=6),
    turns=st.integers(6, 16),
)
def test_any_branch_is_the_same_as_one_read_afresh(cuts: list[tuple[int, int]], turns: int) -> None:
    """Cut anywhere, also in the middle of a step, and continued in any way."""
    histories = Histories(seed=1)
    ends: tuple[list[JSONObject], ...] = (
        [],
        [user("End?")],
        [said("Or so.")],
        [_system("Now"), user("x"), *step(99)],
    )
    for cut, end in cuts:
        messages = [*_talk(turns)[: 1 + cut], *ends[end]]
        assert _reads(histories, messages)
