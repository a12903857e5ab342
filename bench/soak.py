"""`python -m bench.soak [MINUTES]`: RSS of a gateway at half its capacity, minute by minute.

Requests of every kind come in random order, with and without streams, from forty users with new
words and growing histories, among twelve catalogues; some clients hang up half-way. The pace keeps
the gateway at half a core. Caches fill in the first tenth of the time, or in 45 seconds of a short
run; what the last tenth has above the one after that is the growth.
"""

import itertools
import math
import random
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import orjson

from bench.bodies import ASK, history, many_tools
from bench.measure import Bench
from bench.process import Running, free_port, running
from bench.programs import NoCompiler, build_programs
from bench.servers import Site, usher
from proxy.wire import JSON, JSONObject

SHARE = 0.5
STEPS = 10
LIMIT_PERCENT = 5.0
USERS = 40
CATALOGUES = 12
FILLING_SECONDS = 45.0
WORDS = ("ticket", "invoice", "deploy", "calendar", "storage", "secret", "route", "report", "user")


def main() -> int:
    """Print a line a minute, and the growth at the end; 1 when it is more than 5 %."""
    seconds = 60 * (float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
    with tempfile.TemporaryDirectory(prefix="usher-soak-") as name:
        try:
            bench = Bench(build_programs(), {}, Path(name))
        except NoCompiler:
            print("soak: no C compiler here, so nothing was measured")
            return 0
        with bench.upstream() as upstream:
            server = usher(Site(bench.folder / "site", upstream, free_port()))
            start = running(
                server.command, server.port, server.ready, server.environ, bench.folder / "run"
            )
            with start as process:
                resident = list(_soak(process, seconds))
    filled = max(1, math.ceil(FILLING_SECONDS / seconds * STEPS))
    tenth = max(1, len(resident) // STEPS)
    before = statistics.median(resident[filled * tenth : (filled + 1) * tenth])
    after = statistics.median(resident[-tenth:])
    growth = (after / before - 1) * 100
    print(f"grew by {growth:.1f} %: {before / 1e6:.0f} to {after / 1e6:.0f} MB")
    return int(growth > LIMIT_PERCENT)


def _soak(process: Running, seconds: float) -> Iterator[int]:
    """Resident bytes of the serving process, once a minute or a tenth of the time."""
    chance = random.Random(1)
    requests = _requests(chance)
    step = min(60.0, seconds / STEPS)
    began, spent, sent = time.monotonic(), process.cpu(), 0
    for number in itertools.count(1):
        while time.monotonic() - began < number * step:
            _send(process.port, next(requests), leave=chance.random() < 0.02)
            sent += 1
            ahead = (process.cpu() - spent) / SHARE - (time.monotonic() - began)
            time.sleep(min(max(0.0, ahead), 0.5))
        resident = process.own_rss()
        print(
            f"{number * step / 60:6.1f} min  {sent:8} requests  {resident / 1e6:6.0f} MB",
            flush=True,
        )
        yield resident
        if number * step >= seconds:
            return


def _requests(chance: random.Random) -> Iterator[bytes]:
    catalogues = [many_tools(100 + 10 * number) for number in range(CATALOGUES)]
    long = history(60)
    for number in itertools.count():
        words = " ".join(chance.choices(WORDS, k=12))
        messages: list[JSON] = [{"role": "user", "content": f"{ASK} {words} {number}"}]
        if chance.random() < 0.2:
            messages = [*long[: chance.randrange(1, len(long))], *messages]
        body: JSONObject = {"model": "m", "messages": messages, "user": f"u{number % USERS}"}
        if chance.random() < 0.7:
            body["tools"] = list(chance.choice(catalogues))
        if chance.random() < 0.4:
            body["stream"] = True
        yield orjson.dumps(body)


def _send(port: int, body: bytes, *, leave: bool) -> None:
    """One request on a connection of its own, as short-lived clients have it."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
            b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body
        )
        if leave:
            return
        first = connection.recv(65_536)
        if b" 200 " not in first[:16]:
            sys.exit(f"the gateway answered {first[:80]!r}")
        with suppress(ConnectionResetError):
            while connection.recv(65_536):
                pass


if __name__ == "__main__":
    sys.exit(main())
