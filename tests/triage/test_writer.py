"""Notes by a small model, and what happens when it fails."""

import orjson
import pytest

from proxy.errors import ConnectFailed
from proxy.judge.job import Purpose
from proxy.ledger.usage import Row
from proxy.triage.candidates import Candidate, find_candidates
from proxy.triage.writer import ModelWriter, Place, bind_note
from proxy.triage_settings import Writer
from proxy.upstream.transport import Prepared
from tests.fakes.transport import FakeTransport, Outcome
from tests.triage.talk import converse, said, small, user

pytestmark = pytest.mark.anyio
PURPOSE = Purpose("triage", "req_1", "t", "k", context="triage")
GOOD = orjson.dumps({
    "model": "small-1",
    "choices": [{"message": said("A\n note."), "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 90, "completion_tokens": 4},
})  # fmt: skip


def _candidates(*texts: str) -> list[Candidate]:
    messages = [m for text in texts for m in (user(text), said("Yes"))]
    return find_candidates(converse([*messages, user("z")]), None, small()).units


def _writer(rows: list[Row], *outcomes: Outcome) -> tuple[ModelWriter, FakeTransport]:
    way = FakeTransport(*outcomes)
    place = Place("w", "small", "http://w.test/v1/chat/completions", [])
    return ModelWriter(way, place, Writer(model="small", parameters={"seed": 1}), rows.append), way


async def test_a_note_per_unit() -> None:
    """On one line, token-capped, and booked under triage."""
    rows: list[Row] = []
    writer, way = _writer(rows, Prepared(200, [], GOOD), Prepared(200, [], GOOD))
    candidates = _candidates("One", "Two")
    notes = await writer.write(candidates, PURPOSE)
    assert notes == {candidate.link: "A note." for candidate in candidates}
    raw = way.sent[0].body
    assert isinstance(raw, bytes)
    body = orjson.loads(raw)
    assert (body["model"], body["max_tokens"], body["seed"]) == ("small", 160, 1)
    assert [(r.context, r.model, r.prompt_tokens, r.outcome) for r in rows] == [
        ("triage", "small", 90, "ok")
    ] * 2


@pytest.mark.parametrize(("outcome", "booked"), [
    (ConnectFailed("down"), "upstream_unreachable"),
    (Prepared(500, [], b"oops"), "http_500"),
    (Prepared(200, [], b"oops"), "malformed"),
    (Prepared(429, [], GOOD), "http_429"),
])  # fmt: skip
async def test_a_failure_is_no_note(outcome: Outcome, booked: str) -> None:
    """And a row all the same."""
    rows: list[Row] = []
    writer, _ = _writer(rows, outcome)
    assert await writer.write(_candidates("One"), PURPOSE) == {}
    assert [row.outcome for row in rows] == [booked]


def test_constraints_stand_in_the_note_word_for_word() -> None:
    """Whatever the model made of them; too many of them are no note."""
    (candidate,) = _candidates("Hello.\nNever use port 80. Bye.")
    assert bind_note("Ports.", candidate) == "Ports.\nNever use port 80."
    assert bind_note("Never use port 80.", candidate) == "Never use port 80."
    (many,) = _candidates("You must not. " * 200)
    assert bind_note("x", many) is None
