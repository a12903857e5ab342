"""Triage in a whole gateway: the upstream, the judge and the writer are fakes on one transport."""

import re
from pathlib import Path

import httpx
import orjson
import pytest

from proxy.app import Gateway, build_gateway
from proxy.settings import Settings
from proxy.upstream.transport import Prepared, UpstreamRequest
from proxy.wire import JSON, JSONObject
from tests.fakes.transport import FakeTransport
from tests.triage.talk import check_pairs, said, step, user
from tests.triage.talk import sign as sign_prefix
from tests.triage.world import World, chat, header, make, small_talk
from tests.turns import JSON_TYPE, call, chat_request

pytestmark = pytest.mark.anyio


async def _talk(gateway: Gateway, *questions: str, **body: JSON) -> list[JSONObject]:
    messages: list[JSONObject] = []
    for question in questions:
        messages.append(user(question))
        _, answer = await chat(gateway, messages, **body)
        messages.append(orjson.loads(answer)["choices"][0]["message"])
    return messages


async def test_the_seeds_smoke_run(tmp_path: Path) -> None:
    """Greeting and arithmetic go at 0.73 and 0.955, the live question stays: two messages."""
    world = World(small_talk)
    gateway = make(world, tmp_path)
    messages = await _talk(gateway, "Hi", "what is 1 + 1", "what is mars")
    reply, _ = await chat(gateway, [*messages, user("and venus?")])
    sent = world.main[-1]["messages"]
    assert [m["content"] for m in sent] == ["what is mars", "Answer 3.", "and venus?"]
    assert re.match(r"plan=[0-9a-f]{8};kept=2;noted=0;dropped=2;saved=\d+$", header(reply))


async def test_a_greeting_below_the_gate_stays(tmp_path: Path) -> None:
    """At 0.546, as in the seed's earlier check, the suggestion is ignored."""
    world = World(lambda _, text: ("drop", 0.546 if "Hi" in text else 0.955))
    gateway = make(world, tmp_path)
    messages = await _talk(gateway, "Hi", "what is 1 + 1", "what is mars")
    await chat(gateway, [*messages, user("and venus?")])
    assert [m["content"] for m in world.main[-1]["messages"]][:2] == ["Hi", "Answer 1."]


async def test_the_seeds_live_failure_cannot_happen(tmp_path: Path) -> None:
    """A thinking block signed over a prefix that triage has changed does not go up again."""
    world = World(small_talk, signs=True)
    gateway = make(world, tmp_path)
    messages = await _talk(gateway, "Hi", "what is 1 + 1", "what is mars", "and venus?")
    messages = [*messages, user("and pluto?")]
    await chat(gateway, messages)
    sent = world.main[-1]["messages"]
    assert sent[0]["content"] == "what is mars"
    assert "thinking_blocks" not in sent[1]
    assert sent[3]["thinking_blocks"][0]["signature"] == sign_prefix(sent[:3])


async def test_off_is_byte_identical(tmp_path: Path) -> None:
    """By setting, and by a request's own header."""
    world = World(small_talk)
    gateway = make(world, tmp_path, mode="off")
    messages = await _talk(gateway, "Hi", "what is 1 + 1", "what is mars")
    assert not world.judged
    raw = orjson.dumps({"model": "m", "messages": messages})
    reply = await gateway.turn.chat(chat_request(raw))
    assert world.raw[-1] == raw
    assert not header(reply)
    world = World(small_talk)
    gateway = make(world, tmp_path)
    messages = [*await _talk(gateway, "Hi", "what is 1 + 1", "what is mars"), user("Go on")]
    await chat(gateway, messages, [(b"x-usher-triage", b"off")])
    assert world.raw[-1] == orjson.dumps({"model": "m", "messages": messages})


async def test_shadow_decides_and_changes_nothing(tmp_path: Path) -> None:
    """The decision is there to be read, the request goes up as it came."""
    world = World(small_talk)
    gateway = make(world, tmp_path, mode="observe")
    messages = [*await _talk(gateway, "Hi", "what is 1 + 1", "what is mars"), user("Go on")]
    reply, _ = await chat(gateway, messages)
    assert world.judged
    assert world.raw[-1] == orjson.dumps({"model": "m", "messages": messages})
    assert "dropped=2" in header(reply)
    assert header(reply).endswith("shadow=1")


async def test_a_failing_judge_leaves_the_context_as_it_is(tmp_path: Path) -> None:
    """The reason is recorded."""
    world = World(small_talk, judge_fails=True)
    gateway = make(world, tmp_path)
    messages = [*await _talk(gateway, "Hi", "what is 1 + 1", "what is mars"), user("Go on")]
    entry = await gateway.triage.explain("default", "req_1")
    await chat(gateway, messages)
    assert world.raw[-1] == orjson.dumps({"model": "m", "messages": messages})
    assert entry["reason"] == "judge: only what is built in answered"


async def test_without_a_remote_judge_everything_stays(tmp_path: Path) -> None:
    """The embedded ranker's opinion is not asked for."""
    world = World(small_talk)
    settings = Settings.model_validate({
        "upstream": {"base_url": "http://127.0.0.1:1/v1"},
        "ledger": {"enabled": False}, "prediction": {"ranker": "lexical"},
        "triage": {"mode": "on", "budget_tokens": 500, "protect": {"turns": 1, "first": False}},
    })  # fmt: skip
    gateway = build_gateway(settings, tmp_path, {"openai": FakeTransport(answer=world.answer)})
    messages = [*await _talk(gateway, "Hi", "what is 1 + 1", "what is mars"), user("Go on")]
    entry = await gateway.triage.explain("default", "req_1")
    await chat(gateway, messages)
    assert entry["reason"] == "no judge"
    assert world.raw[-1] == orjson.dumps({"model": "m", "messages": messages})


async def test_a_decision_is_found_by_the_id_that_the_client_saw(tmp_path: Path) -> None:
    """Which is the upstream's own where it gave one; by ours as well."""
    world = World(small_talk)
    world.headers = [(b"x-request-id", b"up_7")]
    gateway = make(world, tmp_path)
    await _talk(gateway, "Hi", "what is 1 + 1", "what is mars")
    shown = await gateway.triage.explain("default", "up_7")
    assert shown["reason"] == "pays"
    assert shown == await gateway.triage.explain("default", "req_1")
    assert [d["outcome"] for d in shown["decisions"]] == ["drop", "drop"]


async def test_notes_are_written_by_the_small_model(tmp_path: Path) -> None:
    """Only for what is to be compressed; deciding and writing are rows of their own."""
    long = "I would like blue tiles. " * 40
    world = World(lambda _, text: ("compress", 0.8) if "tiles" in text else ("keep", 0.9))
    gateway = make(world, tmp_path)
    messages = await _talk(gateway, long, "ok", "what is mars")
    await chat(gateway, [*messages, user("Go on")])
    assert len(world.written) == 1
    assert '[1] "Short note."' in world.main[-1]["messages"][0]["content"]
    rows = [row for row in world.rows if row.context == "triage"]
    assert {(row.detail or {})["purpose"] for row in rows} == {"triage", "triage_note"}
    assert {row.model for row in rows} == {"jev-1", "small"}


@pytest.mark.parametrize("stream", [False, True])
async def test_what_was_removed_can_be_recalled(tmp_path: Path, stream: bool) -> None:
    """The call is answered inside the reply, and replayed on the next request."""
    world = World(lambda _, text: ("drop", 0.9) if "ledger" in text else ("keep", 0.9))
    gateway = make(world, tmp_path)
    tools = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
    first = [user("Look at the ledger"), *step(1, "ledger total 4711 " * 30), said("Done.")]
    second = [user("And the moon?"), *step(2, "moon"), said("Grey.")]
    messages = [*first, *second, user("And mars?")]
    await chat(gateway, messages, tools=tools)
    messages += [said("Red."), user("What was the total?")]
    world.replies = [
        {"role": "assistant", "content": None, "tool_calls": [call("recall", {"n": 2}, "r1")]},
        said("It was 4711."),
    ]
    _, answer = await chat(gateway, messages, tools=tools, stream=stream)
    assert b"recall" not in answer
    assert b"It was 4711." in answer
    hidden = world.main[-1]["messages"][-1]
    assert hidden["role"] == "tool"
    assert "ledger total 4711" in hidden["content"]
    assert [t["function"]["name"] for t in world.main[-1]["tools"]] == ["look", "recall"]
    await chat(gateway, [*messages, said("It was 4711."), user("Good")], tools=tools)
    replayed = world.main[-1]["messages"]
    check_pairs(replayed)
    assert any("4711" in str(m["content"]) for m in replayed if m["role"] == "tool")
    assert {row.context for row in world.rows} >= {"main", "triage"}


async def test_a_request_without_tools_gets_none(tmp_path: Path) -> None:
    """Recall is for requests that carry tools."""
    world = World(small_talk)
    gateway = make(world, tmp_path)
    messages = await _talk(gateway, "Hi", "what is 1 + 1", "what is mars")
    await chat(gateway, [*messages, user("Go on")])
    assert "tools" not in world.main[-1]


async def test_usage_that_we_asked_for_stays_with_us(tmp_path: Path) -> None:
    """A stream's usage triggers triage; a client that did not ask for it does not see it."""
    world = World(small_talk)
    gateway = make(world, tmp_path)
    messages: list[JSONObject] = []
    for question in ("Hi", "what is 1 + 1", "what is mars"):
        messages.append(user(question))
        _, answer = await chat(gateway, messages, stream=True)
        assert b"usage" not in answer
        assert answer.endswith(b"data: [DONE]\n\n")
        messages.append(said("Fine."))
    assert world.main[-1]["stream_options"] == {"include_usage": True}
    assert world.judged


async def test_triage_and_deferral_work_together(tmp_path: Path) -> None:
    """Many tools are deferred, old turns go, and both tools of ours are declared."""
    world = World(small_talk)
    gateway = make(world, tmp_path)
    tools = [
        {"type": "function", "function": {
            "name": f"tool_{n}", "description": "Does a thing. " * 40,
            "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
        }} for n in range(60)
    ]  # fmt: skip
    messages = await _talk(gateway, "Hi", "what is 1 + 1", "what is mars", tools=tools)
    reply, _ = await chat(gateway, [*messages, user("and venus?")], tools=tools)
    names = [tool["function"]["name"] for tool in world.main[-1]["tools"]]
    assert {"tool_search", "recall"} <= set(names)
    assert len(names) < 20
    sent = world.main[-1]["messages"]
    assert [message["content"] for message in sent] == ["what is mars", "Answer 3.", "and venus?"]
    assert "dropped=2" in header(reply)


async def test_an_oversized_result_is_cut_without_triage(tmp_path: Path) -> None:
    """The same bytes on every request, and the whole of it one recall away."""
    world = World(small_talk)
    settings = Settings.model_validate({
        "upstream": {"base_url": "http://127.0.0.1:1/v1"},
        "ledger": {"enabled": False}, "prediction": {"ranker": "lexical"},
        "limits": {"max_tool_result_chars": 300},
    })  # fmt: skip
    gateway = build_gateway(settings, tmp_path, {"openai": FakeTransport(answer=world.answer)})
    messages = [user("Look"), *step(1, "x" * 5000)]
    tools = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
    await chat(gateway, messages, tools=tools)
    await chat(gateway, [*messages, said("Long."), user("Go on")], tools=tools)
    first, second = (body["messages"][2] for body in world.main)
    assert first == second
    assert 300 < len(first["content"]) < 450
    assert "recall(2) returns them" in first["content"]
    assert "recall" in [tool["function"]["name"] for tool in world.main[0]["tools"]]


async def test_a_request_that_compacts_needs_everything(tmp_path: Path) -> None:
    """An agent's own summary request gets the whole history."""
    world = World(small_talk)
    gateway = make(world, tmp_path)
    messages = await _talk(gateway, "Hi", "what is 1 + 1", "what is mars")
    messages.append(user("Please summarize the conversation so far."))
    await chat(gateway, messages)
    assert world.main[-1]["messages"] == messages


async def test_native_compaction_is_left_alone(tmp_path: Path) -> None:
    """The header says why."""
    world = World(small_talk)
    gateway = make(world, tmp_path)
    reply, _ = await chat(gateway, [user("Hi")], context_management={"edits": []})
    assert header(reply) == "pass;reason=native"


async def test_the_writer_may_be_a_model_of_the_upstream(tmp_path: Path) -> None:
    """With that upstream's address and key; its note arrives like any other."""
    world = World(lambda _, text: ("compress", 0.8) if "tiles" in text else ("keep", 0.9))
    gateway = make(world, tmp_path, writer={"model": "small"})
    messages = await _talk(gateway, "I would like blue tiles. " * 40, "ok", "what is mars")
    await chat(gateway, [*messages, user("Go on")])
    notes = [body for body in world.main if body["model"] == "small"]
    assert len(notes) == 1
    assert '[1] "Answer' in world.main[-1]["messages"][0]["content"]


async def test_built_in_rules_are_opt_in(tmp_path: Path) -> None:
    """Without a judge: small talk goes, an old long result is cleared and can be recalled."""
    world = World(small_talk)
    settings = Settings.model_validate({
        "upstream": {"base_url": "http://127.0.0.1:1/v1"},
        "ledger": {"enabled": False}, "prediction": {"ranker": "lexical"},
        "triage": {
            "mode": "on", "budget_tokens": 500, "embedded": True,
            "protect": {"turns": 1, "steps": 1, "first": False}, "cost": {"min_reclaim": 0},
        },
    })  # fmt: skip
    gateway = build_gateway(settings, tmp_path, {"openai": FakeTransport(answer=world.answer)})
    tools = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
    messages = [user("thanks a lot!"), said("Sure"), user("Look"), *step(1, "x" * 9_000)]
    messages += [said("Seen."), user("Again"), *step(2), said("Seen."), user("And?")]
    await chat(gateway, messages, tools=tools)
    await chat(gateway, [*messages, said("x"), user("Go on")], tools=tools)
    sent = world.main[-1]["messages"]
    check_pairs(sent)
    assert sent[0] == user("Look")
    assert "recall(3) returns them" in sent[2]["content"] or "recall(2)" in sent[2]["content"]
    assert not world.judged


@pytest.mark.parametrize("defers", [False, True])
async def test_a_turn_of_unknown_blocks_goes_on_without_thinking(
    tmp_path: Path, defers: bool
) -> None:
    """Neither the block nor what asks for the next one goes up, with deferral as without."""
    world = World(small_talk)
    gateway = make(world, tmp_path)
    tools = [
        {"type": "function", "function": {
            "name": f"tool_{n}", "description": "Does a thing. " * 40, "parameters": {},
        }} for n in range(60 if defers else 1)
    ]  # fmt: skip
    blocks = [{"type": "thinking", "signature": "made-before-the-restart"}]
    messages = [user("Look"), *step(1, thinking_blocks=blocks)]
    asked = {"type": "enabled", "budget_tokens": 2_000}
    reply, _ = await chat(gateway, messages, tools=tools, thinking=asked, reasoning_effort="low")
    assert world.main[-1]["messages"] == [user("Look"), *step(1)]
    assert not {"thinking", "reasoning_effort"} & set(world.main[-1])
    assert ("tool_search" in str(world.main[-1]["tools"])) is defers
    assert ";thinking=off" in header(reply)
    await chat(gateway, [*messages, said("Seen."), user("And?")], tools=tools, thinking=asked)
    assert world.main[-1]["thinking"] == asked


class _Keeper:
    """An upstream that keeps what it gets."""

    def __init__(self) -> None:
        self.got: list[bytes] = []

    async def send(self, request: UpstreamRequest) -> Prepared:
        body = request.body
        assert body is not None
        whole = body if isinstance(body, bytes) else b"".join([piece async for piece in body])
        self.got.append(whole)
        usage = {"input_tokens": 90_000, "output_tokens": 1, "prompt_tokens": 90_000}
        return Prepared(200, JSON_TYPE, orjson.dumps({"output": [], "usage": usage}))

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/messages"])
async def test_other_protocols_pass_through_as_they_came(tmp_path: Path, path: str) -> None:
    """Byte for byte, however long their history is, and whatever the header asks for."""
    settings = Settings.model_validate({
        "upstream": {"base_url": "http://127.0.0.1:1/v1"}, "prediction": {"ranker": "lexical"},
        "ledger": {"enabled": False}, "triage": {"mode": "on", "budget_tokens": 1},
    })  # fmt: skip
    keeper = _Keeper()
    gateway = build_gateway(settings, tmp_path, {"openai": keeper})
    talk = [m for n in range(4) for m in (user(f"{n} " + "x" * 900), said("Yes."))]
    raw = orjson.dumps({"model": "m", "input": talk, "messages": talk}) + b" "
    async with (
        gateway.app.router.lifespan_context(gateway.app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(gateway.app), base_url="http://localhost"
        ) as client,
    ):
        for _ in range(2):
            reply = await client.post(path, content=raw, headers={"x-usher-triage": "on"})
            assert reply.status_code == 200
            assert "x-usher-triage" not in reply.headers
    assert keeper.got == [raw, raw]
