"""Edits, hidden messages and signatures put together."""

import orjson

from proxy.plan.weave import Edit
from proxy.triage.render import Style, render_cuts
from proxy.triage.signed import seal_of
from proxy.triage.stitch import Seams, finish_prefix, stitch
from proxy.wire import JSONObject
from tests.triage.talk import act_on, converse, said, step, user

BLOCK = [{"type": "thinking", "signature": "sig-of-the-second"}]
SEAL = seal_of(b"sig-of-the-second")


def _history() -> list[JSONObject]:
    return [user("Hi"), said("Hello"), user("Two"), said("Yes.", thinking_blocks=BLOCK), user("3")]


def test_without_edits_the_bytes_are_the_clients() -> None:
    """White space included."""
    raw = b'[ {"role":"user", "content":"Hi"} ]'
    assert stitch(converse(orjson.loads(raw)), raw, Seams()).body == raw


def test_a_block_stays_while_its_prefix_does() -> None:
    """It is known what it was made from, and the same is in front of it now."""
    talk, raw = converse(_history()), orjson.dumps(_history())
    assert stitch(talk, raw, Seams(states={SEAL: ""})).body == raw


def test_a_block_behind_an_edit_is_left_out() -> None:
    """Its message stays, without the block."""
    talk, raw = converse(_history()), orjson.dumps(_history())
    cuts = render_cuts(talk, act_on(talk, u1=("drop", "Hi")), Style())
    done = stitch(talk, raw, Seams(cuts, states={SEAL: ""}))
    assert orjson.loads(done.body) == [user("Two"), said("Yes."), user("3")]
    assert done.stale == (3,)
    made_after = stitch(talk, raw, Seams(cuts, states={SEAL: _state_before(done.state, talk, raw)}))
    assert not made_after.stale


def _state_before(_: str, talk: object, raw: bytes) -> str:
    """The state of a request under the plan that ended before the block."""
    earlier = _history()[:3]
    shorter = converse(earlier)
    cuts = render_cuts(shorter, act_on(shorter, u1=("drop", "Hi")), Style())
    return stitch(shorter, orjson.dumps(earlier), Seams(cuts)).state


def test_an_unknown_block_is_not_trusted() -> None:
    """After a loss of the store nobody knows what it was made from."""
    talk, raw = converse(_history()), orjson.dumps(_history())
    assert b"thinking_blocks" not in stitch(talk, raw, Seams()).body


def test_hidden_messages_go_with_what_they_belong_to() -> None:
    """They are put back into what stays and are gone with what is dropped."""
    messages = [user("Hi"), said("Hello"), user("Two"), said("Yes."), user("3")]
    talk, raw = converse(messages), orjson.dumps(messages)
    hidden = Edit(before=(said("searching"),))
    cuts = render_cuts(talk, act_on(talk, u1=("drop", "Hi")), Style())
    done = stitch(talk, raw, Seams(cuts, {1: hidden, 3: hidden}))
    assert [m["content"] for m in orjson.loads(done.body)] == ["Two", "searching", "Yes.", "3"]


def test_hidden_signed_messages_are_stripped_behind_an_edit() -> None:
    """The client never saw them, so they can only be distrusted."""
    messages = [user("Hi"), said("Hello"), user("Two"), said("Yes."), user("3")]
    talk, raw = converse(messages), orjson.dumps(messages)
    hidden = Edit(before=(said("searching", thinking_blocks=BLOCK),))
    cuts = render_cuts(talk, act_on(talk, u1=("drop", "Hi")), Style())
    assert b"thinking" not in stitch(talk, raw, Seams(cuts, {3: hidden})).body
    assert b"thinking" in stitch(talk, raw, Seams({}, {3: hidden})).body


def test_a_finished_beginning_gives_the_same_bytes() -> None:
    """For a longer history, and with the same state."""
    messages = [user("Hi"), said("Hello"), user("Do"), *step(1), said("Done."), user("3")]
    longer = [*messages, said("Four"), user("5"), *step(2), said("x"), user("6")]
    acts = {"u1": ("drop", "Hi"), "u3": ("note", "Found 7.")}
    short, long = converse(messages), converse(longer)
    seams = Seams(render_cuts(short, act_on(short, **acts), Style("recall")))
    prefix = finish_prefix(short, seams)
    assert prefix is not None
    assert prefix.fits(long, {})
    whole = Seams(render_cuts(long, act_on(long, **acts), Style("recall")))
    raw = orjson.dumps(longer)
    assert stitch(long, raw, Seams(), prefix) == stitch(long, raw, whole)


def test_a_beginning_does_not_fit_another_history() -> None:
    """Nor one with something hidden in it."""
    messages = [user("Hi"), said("Hello"), user("Do"), said("x"), user("3")]
    talk = converse(messages)
    prefix = finish_prefix(talk, Seams(render_cuts(talk, act_on(talk, u1=("drop", "Hi")), Style())))
    assert prefix is not None
    assert prefix.fits(talk, {})
    assert not prefix.fits(talk, {0: Edit()})
    assert not prefix.fits(converse([user("Ho"), *messages[1:]]), {})
