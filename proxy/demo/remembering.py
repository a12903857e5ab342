"""The story's messages come in; what the memory agent does without and with the gate goes out."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from proxy.demo.talk import CONVERSATIONS, hold_talks
from proxy.evals.gate import THRESHOLD, open_gate
from proxy.judge.questions import State
from proxy.memory.agent import Agent, Task
from proxy.memory.bank import Bank
from proxy.memory.database import Database, memory_url
from proxy.memory.evidence import Heard
from proxy.memory.offline import OfflineWriter
from proxy.memory.principal import Principal
from proxy.memory.writer import Errand
from proxy.memory_settings import Memory
from proxy.wire import JSONObject

_ALI = Principal("demo", "ali")
_SAID = "Of course."


def compare_memory() -> JSONObject:
    """The same conversations twice; the gate is the built-in one, the agent the stand-in."""
    gate = open_gate("auto")
    runs = {"off": lambda _: True, "on": lambda state: (gate(state) or 0.0) >= THRESHOLD}
    report: JSONObject = {"conversations": CONVERSATIONS}
    for name, passes in runs.items():
        with TemporaryDirectory() as folder:
            report[name] = asyncio.run(_remember(Path(folder), passes))
    return {**report, "turns": report["off"]["runs"]}


async def _remember(folder: Path, passes: Callable[[State], bool]) -> JSONObject:
    bank = Bank(Database(memory_url(None, folder)), Memory().token_limit)
    agent, writer, runs = Agent(bank, Memory()), OfflineWriter(), 0
    for said in hold_talks():
        conversation: list[JSONObject] = []
        for text in said:
            if passes({"latest": text, "conversation": conversation[-6:]}):
                runs += 1
                await agent.run(Task(Heard(text), Errand(_ALI, "demo", "demo")), writer)
            conversation.append({"role": "user", "content": text})
            conversation.append({"role": "assistant", "content": _SAID})
    snapshot = await bank.read(_ALI)
    await bank.aclose()
    stored = [{"key": memory.key, "value": memory.value} for memory in snapshot.memories]
    return {"runs": runs, "stored": stored, "tokens": snapshot.tokens}
