"""Whatever breaks behind a reply, the reply is whole, nothing half written, and the log tells."""

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from proxy.memory import bank as bank_module
from proxy.memory.bank import Bank
from proxy.memory.change import Origin, Store
from proxy.memory.database import Database, memory_url
from proxy.upstream.transport import Prepared
from tests.fakes.transport import FakeTransport
from tests.memory.scene import ALI, answer, header, open_scene, read, set_memory
from tests.turns import completion

pytestmark = pytest.mark.anyio

ASK = "Remember that I live in Rome."
ROME = set_memory("city", "The user lives in Rome.")


async def test_the_agents_model_is_down(tmp_path: Path) -> None:
    """The reply is the upstream's own bytes; what happened can be asked for."""
    raw = await completion("Noted.").read()
    async with open_scene(tmp_path, "http_503") as scene:
        reply = await scene.say(ASK)
        assert (reply.status, await read(reply)) == (200, raw)
        await scene.settled()
        told = await scene.bank.explain(ALI, "req_1")
        assert told is not None
        assert told["status"] == "pass:http_503"


async def test_the_agents_model_is_slow(tmp_path: Path) -> None:
    """The reply waits for join_ms and no longer; the memory still lands."""
    async with open_scene(tmp_path, answer(ROME), join_ms=50) as scene:
        scene.writer.wait = asyncio.Event()
        async with asyncio.timeout(5):
            body = await read(await scene.say(ASK))
        assert b"usher" not in body
        scene.writer.wait.set()
        await scene.settled()
        assert "city" in await scene.values()


async def test_the_client_leaves(tmp_path: Path) -> None:
    """Who hangs up has asked all the same: it is stored, and told next time."""
    async with open_scene(tmp_path, answer(ROME)) as scene:
        scene.writer.wait = asyncio.Event()
        reply = await scene.say(ASK)
        await reply.body.aclose()  # type: ignore[union-attr] # a Watched
        scene.writer.wait.set()
        await scene.settled()
        assert "city" in await scene.values()
        told = orjson.loads(await read(await scene.say("Hello?")))["usher"]["memory"]
        assert told[0]["late"] is True


async def test_the_upstream_fails(tmp_path: Path) -> None:
    """An answer that fails is the client's to see; the wish to remember is still heard."""
    failing = FakeTransport(answer=lambda _: completion("x", number=1))
    async with open_scene(tmp_path, answer(ROME), transport=failing) as scene:
        failing._answer = lambda _: _failed()
        reply = await scene.say(ASK)
        assert reply.status == 503
        await read(reply)
        await scene.settled()
        assert "city" in await scene.values()


def _failed() -> Prepared:
    reply = completion("no")
    reply.status = 503
    return reply


@pytest.mark.item("memory/disk-full")
async def test_the_disk_is_full(tmp_path: Path) -> None:
    """A store that cannot write costs the memory, not the reply, and leaves nothing behind."""
    async with open_scene(tmp_path, answer(ROME)) as scene:
        await scene.bank.change(ALI, [Store("a", "x", 1)], Origin())
        with sqlite3.connect(tmp_path / "memory.db") as connection:
            connection.execute(
                "CREATE TRIGGER full BEFORE INSERT ON usher_memory_events"
                " BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END"
            )
        connection.close()
        reply = await scene.say(ASK)
        assert reply.status == 200
        await read(reply)
        await scene.settled()
        assert await scene.values() == {"a": "x"}
        assert len(await scene.bank.events(ALI)) == 1


async def test_the_store_is_gone(tmp_path: Path) -> None:
    """Without a store the answer goes on without memories, and says so."""
    async with open_scene(tmp_path) as scene:
        with sqlite3.connect(tmp_path / "memory.db") as connection:
            connection.execute("DROP TABLE usher_memory")
        connection.close()
        reply = await scene.say(ASK)
        assert header(reply) == "off;reason=unavailable"
        assert reply.status == 200
        await read(reply)


async def test_the_gate_is_down(tmp_path: Path) -> None:
    """A hundred requests while nobody judges run the agent at most so often a minute."""
    async with open_scene(tmp_path, gate=lambda _: None, runs_per_minute=10) as scene:
        for number in range(100):
            await read(await scene.say(f"What is {number} plus one?"))
        await scene.settled()
        assert len(scene.writer.asked) == 10
        assert await scene.values() == {}


async def test_too_much_is_under_way(tmp_path: Path) -> None:
    """Beyond the queue nothing is begun, and the header says so."""
    async with open_scene(tmp_path, answer(ROME), queue=1, join_ms=0) as scene:
        scene.writer.wait = asyncio.Event()
        await read(await scene.say(ASK))
        reply = await scene.say("Remember my dog, too.", user="eva")
        await read(reply)
        assert header(reply) == "busy"
        scene.writer.wait.set()


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.memory.scene import open_scene, read

class Deadly:
    async def complete(self, body, errand):
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    async with open_scene(Path(sys.argv[1]), writer=Deadly(), join_ms=0) as scene:
        await read(await scene.say("Remember that I live in Rome."))
        await scene.settled()

asyncio.run(main())
"""


@pytest.mark.item("memory/killed")
async def test_killed_between_gate_and_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a kill -9 nothing is half written, the run is on record, and a retry stores it."""
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    code = await asyncio.to_thread(subprocess.run, command, check=False, capture_output=True)
    assert code.returncode == -9, code.stderr.decode()
    left = Bank(Database(memory_url(None, tmp_path)), 100)
    assert (await left.read(ALI)).memories == []
    told = await left.explain(ALI, "req_1")
    assert told is not None
    assert told["status"] == "running"
    await left.aclose()
    monkeypatch.setattr(bank_module, "STUCK_SECONDS", 0.0)
    async with open_scene(tmp_path, answer(ROME)) as scene:
        await read(await scene.say(ASK))
        await scene.settled()
        assert "city" in await scene.values()
