"""One request under triage: what goes up, what is told of it."""

import orjson
import pytest

from proxy.plan.weave import Edit
from proxy.triage.session import Layout
from proxy.triage_settings import Limits
from tests.triage.talk import FakeDecider, Studio, said, small, step, user

pytestmark = pytest.mark.anyio
OLD = [user("One " * 50), said("Yes"), user("Two " * 50), said("Yes"), user("Three")]


async def _planned(**settings: object) -> Studio:
    studio = Studio(small(**settings), FakeDecider({1: "drop"}))
    _, session = await studio.send(OLD)
    studio.hear(session, 2_000)
    await studio.settle()
    return studio


async def test_observing_weaves_hidden_messages_only() -> None:
    """What deferral puts in is put in, and nothing of triage's."""
    studio = Studio(small(mode="observe"), FakeDecider({1: "drop"}))
    _, session = await studio.send(OLD)
    studio.hear(session, 2_000)
    await studio.settle()
    edits = {1: Edit(before=(said("hidden"),))}
    sent, session = await studio.send([*OLD, said("x"), user("y")], edits=edits)
    assert [m["content"] for m in sent[:3]] == [OLD[0]["content"], "hidden", "Yes"]
    assert session.describe()["shadow"] is True
    assert not session.recallable


async def test_usage_is_asked_for_once() -> None:
    """Only on a stream whose client did not ask, and only when triage is on."""
    studio = Studio(small())
    asked = await studio.open(OLD, stream=True, stream_options={"include_usage": True})
    assert not asked.hides_usage
    quiet = await studio.open(OLD, stream=True, stream_options={"x": 1})
    changes = quiet.changes()
    assert orjson.loads(changes["stream_options"] or b"") == {"x": 1, "include_usage": True}
    assert "messages" not in changes
    assert not (await studio.open(OLD)).changes()
    assert not (await studio.open(OLD, mode="observe", stream=True)).changes()


async def test_a_moved_prefix_is_noticed() -> None:
    """Once: with the first request under a plan."""
    studio = await _planned()
    messages = [*OLD, said("x"), user("y")]
    _, first = await studio.send(messages)
    _, second = await studio.send([*messages, said("z"), user("!")])
    assert (first.moved, second.moved) == (True, False)
    value = studio.registry.get_sample_value("usher_triage_prefix_moves_total")
    assert value == 1


async def test_recall_is_offered_when_something_is_gone() -> None:
    """Not before, not without tools, not when it is switched off."""
    studio = await _planned()
    messages = [*OLD, said("x"), user("y")]
    assert (await studio.open(messages)).recallable
    assert not (await studio.open(OLD[:1])).recallable
    assert not (await studio.open(messages, tools=None)).recallable
    assert not (await (await _planned(recall=False)).open(messages)).recallable


async def test_a_capped_result_can_be_recalled() -> None:
    """Also where triage itself is off."""
    studio = Studio(small(mode="off"), limits=Limits(max_tool_result_chars=200))
    long = [user("x"), *step(1, "a" * 900)]
    session = await studio.open(long)
    assert session.recallable
    assert b"recall(2) returns them" in session.weave(Layout(recall=True))
    assert not (await studio.open([user("x"), *step(1)])).recallable


async def test_the_header_says_what_was_done() -> None:
    """Before a plan as well."""
    studio = Studio(small())
    session = await studio.open(OLD)
    assert session.header() == "plan=none;kept=3;noted=0;dropped=0;saved=0"
