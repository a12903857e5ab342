"""Kinds of work by name: which body, how many at once, for whom."""

from dataclasses import dataclass
from typing import Literal

Unit = Literal["request", "event"]


@dataclass(frozen=True, slots=True)
class Work:
    """One row of the table; `requests` are those of a round, fewer for slow servers."""

    name: str
    body: str
    connections: int
    requests: int
    unit: Unit = "request"
    peers: bool = True
    seconds: float = 20.0
    slow: int = 60
    """Requests of a round for a server that takes milliseconds for each."""
    settle: float = 1.5
    """Seconds after the warm-up: catalogues are prepared behind the answers."""


WORKS = (
    Work("small, one at a time", "small", 1, 1500, slow=100),
    Work("small, 16 at once", "small", 16, 4000, slow=160),
    Work("small, 64 at once", "small", 64, 4000, slow=256),
    Work("850 KB, 202 tools", "large", 4, 300, slow=24, settle=8.0),
    Work("235 real tools", "real", 8, 400, slow=40, settle=8.0),
    Work("stream of 100 events, 16 at once", "stream", 16, 400, "event", slow=32),
    Work("235 real tools and a stream", "real_stream", 16, 300, "event", slow=32),
    Work("32 paced streams", "paced", 32, 64, "event", slow=64),
    Work("235 real tools, 200 messages", "long", 4, 200, peers=False),
    Work("10,000 tools, 9 MB", "ten_thousand", 2, 24, peers=False, settle=25.0),
)
SLOW = frozenset({"litellm", "portkey"})


def requests_for(work: Work, server: str) -> int:
    """How many requests a round has for a server."""
    return work.slow if server in SLOW else work.requests
