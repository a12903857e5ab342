"""What one fused judgment costs, built in and over HTTP: CPU ms per turn at 235 tools.

    python -m bench.judging [TURNS]

A turn is a new user message: five questions, one of them with 64 tools to choose from, are put
together and asked at once, the answers checked, booked and turned into a selection. The stand-in
model answers from a process of its own, without delay. `picking` is what our ranker takes to find
the 64 among 235.
"""

import asyncio
import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import uvicorn
import uvloop
from starlette.types import Receive, Scope, Send

from bench.process import free_port, running
from proxy.demo.catalogue import load_tools
from proxy.judge.ask import Desk, Judge, Member
from proxy.judge.books import NoPrices
from proxy.judge.breaker import Breaker, Patience
from proxy.judge.cache import AnswerCache
from proxy.judge.embedded import EmbeddedBackend
from proxy.judge.fused import GATE_MODEL, Asking, Said, TurnJudge, pick_candidates
from proxy.judge.job import Backend, Purpose
from proxy.judge.native import build_decision_backend
from proxy.judge.presets import resolve
from proxy.judge.select import Offer, select_tools
from proxy.judge.wording import load_wordings
from proxy.judge_settings import Classification, DecisionProvider
from proxy.ledger.usage import Row
from proxy.observe.log import silent
from proxy.tools.lexical import LexicalIndex, build_lexical
from proxy.tools.rank import Document
from proxy.ways import load_transport
from proxy.wire import JSONObject

TURNS = 400
MAX_OPTIONS = 64
CLASSIFICATION = {"enabled": True, "tool_selection": {"enabled": True}}
KEYS = {"work": None, "location": None}
CONVERSATION = [Said("user", "hello there"), Said("assistant", "Hi! What can I do?")] * 3


def answer(body: Any) -> JSONObject:
    """The stand-in's judgment: yes to every question, the first label of every choice."""
    answers: JSONObject = {}
    for name, question in body["questions"].items():
        if question["type"] == "noul":
            answers[name] = {"type": "noul", "noul": 0.9}
            continue
        labels = list(question["criteria"])
        chances = dict.fromkeys(labels, 0.0) | {labels[0]: 1.0}
        answers[name] = {
            "type": "choice",
            "choice": labels[0],
            "confidence": 1.0,
            "probabilities": chances,
        }
    usage = {"input_tokens": 3000, "output_tokens": 9}
    return {"model": "jev-1.14.0", "answers": answers, "usage": usage}


async def standin(scope: Scope, receive: Receive, send: Send) -> None:
    """The stand-in model as an ASGI application."""
    if scope["type"] != "http":
        return
    pieces, more = [], True
    while more:
        message = await receive()
        pieces.append(message.get("body", b""))
        more = message.get("more_body", False)
    body = b"".join(pieces)
    said = orjson.dumps(answer(orjson.loads(body)) if body else {})
    headers = [(b"content-length", b"%d" % len(said))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": said})


def make_index() -> LexicalIndex:
    """The 235 real tools of the demo."""
    functions = [tool["function"] for tool in load_tools()]
    return build_lexical(
        [
            Document(f["name"], "", f.get("description", ""), orjson.dumps(f.get("parameters")))
            for f in functions
        ]
    )


def messages(phase: str, turns: int) -> list[str]:
    """New words for every turn, so that nothing is remembered."""
    text = "List the storage accounts and the secrets of key vault kv-"
    return [f"{text}{phase}{number}" for number in range(turns)]


def measure_picking(turns: int) -> float:
    """Milliseconds of CPU to pick a turn's candidates."""
    index = make_index()
    spent = 0.0
    for phase in ("warm", "measured"):
        began = time.process_time()
        for latest in messages(phase, turns):
            pick_candidates(index, latest, MAX_OPTIONS)
        spent = (time.process_time() - began) / turns * 1000
    return spent


async def measure(backend: Backend, turns: int) -> float:
    """Milliseconds of CPU per judgment, after as many turns of warm-up."""
    settings = Classification.model_validate(CLASSIFICATION)
    rows: list[Row] = []
    desk = Desk(NoPrices(), rows.append, AnswerCache(0, 0), silent())
    judge = Judge([Member(backend, Breaker(Patience()))], desk)
    tools = pick_candidates(make_index(), messages("", 1)[0], MAX_OPTIONS)
    offer = Offer({tool.name for tool in tools}, (), ())
    spent = 0.0
    async with asyncio.TaskGroup() as group:
        turn_judge = TurnJudge(judge, settings, load_wordings(), group.create_task)
        for phase in ("warm", "measured"):
            began = time.process_time()
            for latest in messages(phase, turns):
                asking = Asking(
                    latest, CONVERSATION, latest, Purpose("", request_id="r"), tools, KEYS
                )
                pending = turn_judge.start(asking).tools
                assert pending is not None
                select_tools(await pending.wait(2), offer, settings.tool_selection)
            spent = (time.process_time() - began) / turns * 1000
    failed = {row.outcome for row in rows} - {"ok"}
    if failed:
        sys.exit(f"judgments failed: {failed}")
    return spent


async def over_http(port: int, turns: int) -> float:
    """The same with the stand-in model behind a connection."""
    own = {"base_url": f"http://127.0.0.1:{port}/v1/systemone", "api_key": "k"}
    resolved = resolve("standin", DecisionProvider.model_validate(own), {})
    assert resolved is not None
    way = load_transport("aiohttp")
    try:
        backend = build_decision_backend("standin", resolved, way, retries=1, seconds=None)
        return await measure(backend, turns)
    finally:
        await way.aclose()


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        uvicorn.run(standin, port=int(sys.argv[2]), log_level="error")
        return
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else TURNS
    found = {"picking": measure_picking(turns)}
    found |= {"embedded": uvloop.run(measure(EmbeddedBackend({GATE_MODEL: lambda _: 0.5}), turns))}
    port = free_port()
    command = [sys.executable, "-m", "bench.judging", "--serve", str(port)]
    with TemporaryDirectory() as folder:
        place = {"PYTHONPATH": str(Path(__file__).parent.parent)}
        with running(command, port, "/", place, Path(folder)):
            found |= {"aiohttp": uvloop.run(over_http(port, turns))}
    sys.stdout.write(json.dumps({name: round(spent, 3) for name, spent in found.items()}) + "\n")


if __name__ == "__main__":
    main()
