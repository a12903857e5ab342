"""CPU per turn of a fused judgment over the real 235 tools: `python -m tests.judge.bench`.

The remote judge answers in this process and in no time, so its reply is made once.
"""

import asyncio
import sys
import time
from collections.abc import Coroutine
from typing import Any

import orjson
import uvloop

from proxy.demo.catalogue import load_tools
from proxy.judge.embedded import EmbeddedBackend
from proxy.judge.fused import Asking, Said, TurnJudge, pick_candidates
from proxy.judge.job import Backend, Purpose
from proxy.judge.select import Offer, select_tools
from proxy.judge.wording import load_wordings
from proxy.judge_settings import Classification
from proxy.tools.rank import Document, build_lexical
from proxy.upstream.transport import Prepared, UpstreamRequest
from tests.fakes.transport import FakeTransport
from tests.judge.fakes import body_of, make_judge, native, reply

TURNS = 500
SETTINGS = Classification.model_validate({"enabled": True, "tool_selection": {"enabled": True}})
BEFORE = [Said("user", "hello there"), Said("assistant", "Hi! What can I do?")] * 3
LATEST = "List the storage accounts in my subscription and show the secrets of key vault number"


class Remote:
    """A decision server whose reply costs nothing."""

    def __init__(self) -> None:
        self._reply = b""

    def __call__(self, request: UpstreamRequest) -> Prepared:
        if not self._reply:
            self._reply = orjson.dumps(answer(body_of(request)))
        return reply(self._reply)


def answer(body: Any) -> Any:
    """Yes to everything, and the first option of every choice."""
    answers: dict[str, Any] = {}
    for name, question in body["questions"].items():
        answers[name] = {"type": "noul", "noul": 0.9}
        if question["type"] == "choice":
            labels = list(question["criteria"])
            weights = dict.fromkeys(labels, 0.0) | {labels[0]: 1.0}
            answers[name] = {"type": "choice", "choice": labels[0], "probabilities": weights}
    return {"model": "jev-1.14.0", "answers": answers, "usage": {"input_tokens": 5_000}}


async def measure(backend: Backend) -> float:
    """Milliseconds of CPU per turn, after a warm-up of as many turns."""
    loop, tasks = asyncio.get_running_loop(), set[asyncio.Task[None]]()

    def spawn(work: Coroutine[Any, Any, None]) -> None:
        task = loop.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    documents = [
        Document(f["name"], "", f.get("description", ""), orjson.dumps(f.get("parameters")))
        for f in (tool["function"] for tool in load_tools())
    ]
    tools = pick_candidates(build_lexical(documents), LATEST, 64)
    offer = Offer({tool.name for tool in tools}, (), ())
    judge = TurnJudge(make_judge(backend), SETTINGS, load_wordings(), spawn)
    spent = 0.0
    for phase in ("warm", "measured"):
        began = time.process_time()
        for turn in range(TURNS):
            started = judge.start(
                Asking(
                    f"{LATEST} {phase} {turn}",
                    BEFORE,
                    f"{phase}{turn}",
                    Purpose("", request_id="r"),
                    tools,
                    {"work": None, "location": None},
                )
            )
            assert started.tools is not None
            select_tools(await started.tools.wait(2), offer, SETTINGS.tool_selection)
        spent = time.process_time() - began
    return spent * 1000 / TURNS


async def main() -> None:
    """Both kinds of judge."""
    embedded = await measure(EmbeddedBackend({"memory_request": lambda _: 0.5}))
    remote = await measure(native(FakeTransport(answer=Remote())))
    sys.stdout.write(f"embedded: {embedded:.3f} ms CPU per turn\n")
    sys.stdout.write(f"remote at 0 ms: {remote:.3f} ms CPU per turn\n")


if __name__ == "__main__":
    uvloop.run(main())
