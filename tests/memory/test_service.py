"""Turns with memory: what runs, what is told, what is put into prompts."""

from itertools import pairwise
from pathlib import Path

import orjson
import pytest

from proxy.memory.change import Origin, Store
from proxy.memory.inject import NOTE, TAG
from tests.fakes.transport import FakeTransport
from tests.memory.scene import (
    ALI,
    answer,
    delete_memory,
    header,
    open_scene,
    read,
    set_memory,
)
from tests.turns import completion, events

pytestmark = pytest.mark.anyio

ROME = set_memory("city", "The user lives in Rome.")


async def test_a_request_is_stored_and_told(tmp_path: Path) -> None:
    """A wish to remember becomes a memory, and the reply says so."""
    async with open_scene(tmp_path, answer(ROME)) as scene:
        reply = await scene.say("Remember that I live in Rome.")
        told = orjson.loads(await read(reply))["usher"]["memory"]
        assert header(reply) == "pass"
        assert [(a["type"], a["key"], a["value"]) for a in told] == [
            ("update", "city", "The user lives in Rome.")
        ]
        assert await scene.values() == {"city": "The user lives in Rome."}


async def test_the_turns_line_says_what_memory_did(tmp_path: Path) -> None:
    """The gate's verdict and how much was put in; names of what was dropped, and no value."""
    async with open_scene(tmp_path, answer(ROME)) as scene:
        await read(await scene.say("Remember that I live in Rome."))
        await read(await scene.say("Where do I live?"))
        first, second = (turn.detail or {} for turn in scene.ledger.turns)
    assert first["memory"]["status"] == "pass"
    assert first["memory"]["score"] > 0.5
    assert (second["memory"]["injected"], second["memory"]["dropped"]) == (1, [])
    assert b"Rome" not in orjson.dumps([first, second])


async def test_a_statement_runs_no_agent(tmp_path: Path) -> None:
    """What is only mentioned is skipped without asking the model; the reply is untouched."""
    upstream = completion("Nice!")
    raw = await upstream.read()
    transport = FakeTransport(completion("Nice!"))
    async with open_scene(tmp_path, answer(ROME), transport=transport) as scene:
        reply = await scene.say("I live in Rome.")
        assert await read(reply) == raw
        await scene.settled()
        assert header(reply) == "skip"
        assert scene.writer.asked == []


@pytest.mark.item("memory/tool-loop")
async def test_once_per_message(tmp_path: Path) -> None:
    """The five steps of a tool loop and a retry run the agent once."""
    async with open_scene(tmp_path, answer(ROME), answer(ROME)) as scene:
        asked = {"role": "user", "content": "Remember Rome and look up the weather."}
        await read(await scene.say(asked))
        loop: list[dict[str, object]] = []
        for step in range(4):
            call = {
                "id": f"c{step}",
                "type": "function",
                "function": {"name": "w", "arguments": "{}"},
            }
            loop += [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{step}", "content": "sunny"},
            ]
            reply = await scene.say(asked, *loop)
            assert header(reply).startswith("memoised")
        await read(await scene.say(asked))
        await scene.settled()
        assert len(scene.writer.asked) == 1


@pytest.mark.item("memory/edited")
async def test_an_edited_message_is_a_new_one(tmp_path: Path) -> None:
    """Another wording in the same place is judged anew."""
    async with open_scene(tmp_path, answer(ROME), answer(ROME)) as scene:
        await read(await scene.say("Remember Rome."))
        await read(await scene.say("Remember Rome, please."))
        await scene.settled()
        assert len(scene.writer.asked) == 2


async def test_memories_reach_the_prompt_after_the_system_text(tmp_path: Path) -> None:
    """The next conversation's system message ends with the block; the user's bytes are the same."""
    async with open_scene(tmp_path, answer(ROME)) as scene:
        await read(await scene.say("Remember that I live in Rome."))
        await scene.settled()
        system = {"role": "system", "content": "Be brief."}
        reply = await scene.say(system, "What shall I cook?")
        sent = scene.upstream[-1]["messages"]
        assert sent[0]["content"].startswith(f"Be brief.\n\n<{TAG}>")
        assert "The user lives in Rome." in sent[0]["content"]
        assert sent[1] == {"role": "user", "content": "What shall I cook?"}
        assert header(reply) == "skip;injected=1"


async def test_a_conversation_keeps_its_prefix(tmp_path: Path) -> None:
    """A write in the middle of a conversation changes no byte that the provider has cached."""
    city = set_memory("diet", "The user eats Roman food.")
    async with open_scene(tmp_path, answer(ROME), answer(city)) as scene:
        await read(await scene.say("Remember that I live in Rome."))
        await scene.settled()
        talk: list[dict[str, object]] = [{"role": "user", "content": "Hello"}]
        await read(await scene.say(*talk))
        for words in ("remember that I eat Roman food", "and now?", "thanks"):
            talk += [{"role": "assistant", "content": "Hm."}, {"role": "user", "content": words}]
            await read(await scene.say(*talk))
            await scene.settled()
        bodies = [body["messages"] for body in scene.upstream[1:]]
        for before, after in pairwise(bodies):
            assert after[: len(before)] == before
        assert "diet" in await scene.values()


@pytest.mark.item("memory/deleted")
async def test_a_deletion_reaches_running_conversations(tmp_path: Path) -> None:
    """Privacy beats the cache: what was deleted is in no prompt from the next request on."""
    async with open_scene(tmp_path, answer(ROME), answer(delete_memory("city"))) as scene:
        await read(await scene.say("Remember that I live in Rome."))
        await scene.settled()
        talk: list[dict[str, object]] = [{"role": "user", "content": "Hello"}]
        await read(await scene.say(*talk))
        assert "Rome" in str(scene.upstream[-1])
        await read(await scene.say("forget where I live"))
        await scene.settled()
        talk += [{"role": "assistant", "content": "Hi"}, {"role": "user", "content": "So?"}]
        await read(await scene.say(*talk))
        assert "Rome" not in str(scene.upstream[-1])


async def test_the_model_is_kept_from_claiming_that_it_is_saved(tmp_path: Path) -> None:
    """A message that the gate let through in time gets a note, and keeps it later on."""
    async with open_scene(tmp_path, answer(ROME)) as scene:
        await read(await scene.say("Remember that I live in Rome."))
        await scene.settled()
        asked = scene.upstream[0]["messages"][-1]
        assert asked["content"].endswith(NOTE)
        hello = {"role": "user", "content": "Remember that I live in Rome."}
        await read(await scene.say(hello, {"role": "assistant", "content": "ok"}, "thanks"))
        assert asked in scene.upstream[-1]["messages"]


async def test_tools_are_never_added(tmp_path: Path) -> None:
    """A request without tools stays one."""
    async with open_scene(tmp_path, answer(ROME)) as scene:
        await read(await scene.say("Remember that I live in Rome."))
        assert all("tools" not in body for body in scene.upstream)


@pytest.mark.parametrize("off", ["setting", "header", "user", "title"])
async def test_off_is_byte_identical(tmp_path: Path, off: str) -> None:
    """Without memory the upstream gets the client's own bytes."""
    mode = "off" if off == "setting" else "on"
    headers = [(b"x-usher-memory", b"off")] if off == "header" else []
    words = "remember Rome"
    if off == "title":
        words = (
            "### Task:\nGenerate a title for the conversation.\n### Chat History:\nUSER: remember"
        )
    async with open_scene(tmp_path, answer(ROME), mode=mode) as scene:
        user = "" if off == "user" else "ali"
        reply = await scene.say(words, headers=headers, user=user)
        await read(reply)
        await scene.settled()
        said = [{"role": "user", "content": words}]
        assert scene.transport.sent[0].body == orjson.dumps({"model": "m", "messages": said})
        assert scene.writer.asked == []


async def test_streams_get_a_comment_and_a_field(tmp_path: Path) -> None:
    """SDKs ignore the comment and keep the field; there is no event that they misread."""
    transport = FakeTransport(events("Noted."))
    async with open_scene(tmp_path, answer(ROME), transport=transport) as scene:
        body = await read(await scene.say("Remember that I live in Rome.", stream=True))
        frames = [f for f in body.split(b"\n\n") if f]
        comments = [f for f in frames if f.startswith(b":")]
        finish = next(f for f in frames if b'"finish_reason":"stop"' in f)
        assert orjson.loads(comments[0].removeprefix(b": usher-memory "))["type"] == "update"
        assert orjson.loads(finish[6:])["usher"]["memory"][0]["key"] == "city"
        assert b"event:" not in body
        assert frames[-1] == b"data: [DONE]"


async def test_librechat_gets_its_event(tmp_path: Path) -> None:
    """With x-usher-events: attachment the stream has LibreChat's event."""
    transport = FakeTransport(events("Noted."))
    async with open_scene(tmp_path, answer(ROME), transport=transport) as scene:
        body = await read(
            await scene.say(
                "Remember that I live in Rome.",
                stream=True,
                headers=[
                    (b"x-usher-events", b"attachment"),
                    (b"x-usher-conversation-id", b"c9"),
                ],
            )
        )
        data = body.partition(b"event: attachment\ndata: ")[2].partition(b"\n")[0]
        told = orjson.loads(data)
        assert told["type"] == "memory"
        assert told["conversationId"] == "c9"
        assert told["memory"] == {
            "key": "city",
            "type": "update",
            "value": "The user lives in Rome.",
            "tokenCount": 6,
        }


async def test_what_came_too_late_is_told_next_time(tmp_path: Path) -> None:
    """A slow agent does not hold the reply; the user's next reply tells of it."""
    async with open_scene(tmp_path, answer(ROME), join_ms=0) as scene:
        first = orjson.loads(await read(await scene.say("Remember that I live in Rome.")))
        await scene.settled()
        second = orjson.loads(await read(await scene.say("And what is the capital of Peru?")))
        assert "usher" not in first
        assert second["usher"]["memory"][0] | {"request_id": ""} == {
            "type": "update",
            "key": "city",
            "request_id": "",
            "value": "The user lives in Rome.",
            "token_count": 6,
            "undo": 1,
            "late": True,
        }


async def test_people_can_opt_out(tmp_path: Path) -> None:
    """Who has switched memory off is neither read nor written."""
    async with open_scene(tmp_path, answer(ROME)) as scene:
        await scene.bank.choose(ALI, {"enabled": False})
        reply = await scene.say("Remember that I live in Rome.")
        assert header(reply) == "off;reason=opted_out"
        await scene.settled()
        assert await scene.values() == {}


async def test_observe_judges_and_stores_nothing(tmp_path: Path) -> None:
    """The score is there to calibrate with; nobody is asked to write, and nothing changes."""
    async with open_scene(tmp_path, answer(ROME), mode="observe") as scene:
        reply = await scene.say("Remember that I live in Rome.")
        await scene.settled()
        assert header(reply) == "pass"
        assert scene.writer.asked == []
        assert scene.service.recent.explain(ALI, "req_1") == {
            "status": "pass",
            "reason": None,
            "score": 0.9,
            "injected": 0,
            "dropped": [],
            "calls": 0,
            "outcomes": [],
        }


async def test_user_tail_stands_in_the_message_for_good(tmp_path: Path) -> None:
    """With `user_tail` the block is at the end of a message, the same bytes each time, once."""
    async with open_scene(tmp_path, placement="user_tail", note_ms=0) as scene:
        await scene.bank.change(ALI, [Store("city", "The user lives in Rome.", 6)], Origin())
        talk: list[dict[str, object]] = [{"role": "user", "content": "Hello"}]
        await read(await scene.say(*talk))
        first = scene.upstream[-1]["messages"][0]
        assert f"<{TAG}>" in first["content"]
        talk += [{"role": "assistant", "content": "Hi"}, {"role": "user", "content": "And?"}]
        await read(await scene.say(*talk))
        assert scene.upstream[-1]["messages"] == [first, *talk[1:]]


async def test_without_a_gate_every_message_is_read(tmp_path: Path) -> None:
    """As in LibreChat: the agent runs once per turn, and decides itself."""
    async with open_scene(tmp_path, gated=False, runs_per_minute=1) as scene:
        for words in ("Hello", "How are you?", "I live in Rome."):
            await read(await scene.say(words))
        await scene.settled()
        assert len(scene.writer.asked) == 3
