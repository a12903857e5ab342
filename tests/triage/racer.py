"""A worker process that decides about conversations at the same time as another one.

    python -m tests.triage.racer REDIS_URL NAME ROUNDS

Writes what it sends up for the next request of each conversation.
"""

import asyncio
import io
import sys

import orjson
import redis

from proxy.observe.log import configure
from proxy.observe.metrics import Metrics
from proxy.settings import Log, State
from proxy.state.redis import Link, RedisStore
from tests.triage.talk import FakeDecider, FakeWriter, Studio, said, small, user

LONG = "Many words about something that was long ago. " * 20


async def race(url: str, name: str, rounds: int) -> list[str]:
    """One decides to drop what the other one notes, in words of its own."""
    link = Link(State(url=url, timeout_ms=10_000), configure(Log(), io.StringIO()), Metrics())
    decider = FakeDecider({1: "drop", 2: "compress"} if name == "one" else {1: "compress"})
    store = RedisStore(link, 600)
    studio = Studio(small(), decider, FakeWriter(f"Noted by {name}."), shared=store)
    sent: list[str] = []
    with redis.Redis.from_url(url) as meeting:
        for number in range(rounds):
            messages = [m for n in range(3) for m in (user(f"{number}.{n} {LONG}"), said("Yes."))]
            messages.append(user("Now?"))
            _, session = await studio.send(messages)
            studio.hear(session, 3_000)
            meet(meeting, f"decide:{number}")
            await studio.settle()
            meet(meeting, f"decided:{number}")
            longer = [*messages, said("Now."), user("And?")]
            sent.append(orjson.dumps((await studio.send(longer))[0]).decode())
    await link.aclose()
    return sent


def meet(meeting: "redis.Redis", place: str) -> None:
    """Waits until both are there."""
    if meeting.incr(place) == 2:
        meeting.rpush(f"go:{place}", "1", "1")
    assert meeting.blpop([f"go:{place}"], timeout=60)


if __name__ == "__main__":
    url, name, rounds = sys.argv[1:]
    sys.stdout.buffer.write(orjson.dumps(asyncio.run(race(url, name, int(rounds)))))
