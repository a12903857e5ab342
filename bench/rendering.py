"""What triage costs a request: CPU ms for a 200-message history, without a plan and with one.

    python -m bench.rendering

Everything that a request waits for is in it: reading the array, hashes, look-ups, the new array,
what the header tells. The same request is made again and again, as a client sends all old messages
each time; what stands in front of the last few messages is known, and the rest is read.
"""

import asyncio
import gc
import statistics
import time

import orjson

from bench.conversations import write_script
from bench.triage import BUDGET, Bill, make_conduct
from proxy.ledger.usage import Tokens
from proxy.plan.envelope import open_envelope
from proxy.plan.identity import Caller
from proxy.triage.conduct import Conduct
from proxy.triage.session import Scene, Session
from proxy.triage_settings import Triage
from proxy.wire import JSONObject

MESSAGES = 200
SAMPLES, REPEATS = 60, 10


async def measure() -> dict[str, float]:
    """Medians of thread time in ms, with garbage collected as rarely as the server does."""
    gc.freeze()
    gc.set_threshold(50_000, 50, 1000)
    later: list[object] = []
    settings = Triage.model_validate({"mode": "on", "budget_tokens": BUDGET})
    conduct = make_conduct(settings, Bill(), 1, later)
    messages = write_script(1).messages[:MESSAGES]
    while messages[-1]["role"] != "user":
        messages.pop()
    figures = {"messages": float(len(messages)), "bytes": float(len(orjson.dumps(messages)))}
    figures["without_plan_ms"] = await _time(conduct, messages)
    session = await _request(conduct, messages)
    session.end(Tokens(prompt=BUDGET * 2))
    while later:
        await later.pop()  # type: ignore[misc]  # what was spawned
    further = [
        *messages,
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "?"},
    ]
    figures["edited_parts"] = float(len((await _request(conduct, further)).acts))
    figures["with_plan_ms"] = await _time(conduct, further)
    return figures


async def _request(conduct: Conduct, messages: list[JSONObject]) -> Session:
    envelope = open_envelope(orjson.dumps({"model": "m", "messages": messages}))
    assert envelope is not None
    return await _open(conduct, Scene(envelope, Caller(), "req", "on"))


async def _open(conduct: Conduct, scene: Scene) -> Session:
    session = await conduct.open(scene)
    assert isinstance(session, Session)
    session.changes()
    await session.send()
    session.header()
    return session


async def _time(conduct: Conduct, messages: list[JSONObject]) -> float:
    envelope = open_envelope(orjson.dumps({"model": "m", "messages": messages}))
    assert envelope is not None
    scene = Scene(envelope, Caller(), "req", "on")
    samples: list[float] = []
    for _ in range(SAMPLES):
        begun = time.thread_time()
        for _ in range(REPEATS):
            await _open(conduct, scene)
        samples.append((time.thread_time() - begun) / REPEATS * 1000)
    return statistics.median(samples)


if __name__ == "__main__":
    for name, value in asyncio.run(measure()).items():
        print(f"{name:16} {value:12,.3f}")
