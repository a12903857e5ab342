"""`python -m bench.curves`: what a request costs as tools, messages and open streams grow."""

import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

from bench.bodies import ASK, history, many_tools
from bench.measure import Bench
from bench.process import Running, free_port, running
from bench.programs import build_programs
from bench.servers import Server, Site, usher
from bench.work import Work
from proxy.wire import JSONObject

TOOLS = (10, 30, 100, 300, 1_000, 3_000, 10_000)
MESSAGES = (1, 20, 100, 500, 2_000)
STREAMS = (1, 10, 100, 1_000)


def main() -> int:
    """Print one line per point."""
    with tempfile.TemporaryDirectory(prefix="usher-curves-") as name:
        folder = Path(name)
        bench = Bench(build_programs(), {}, folder)
        with bench.upstream() as upstream:
            sites = (Site(folder / "site", upstream, free_port()) for _ in itertools.count())
            server = usher(next(sites))
            environ = {**server.environ, "USHER_PREDICTION__RANKER": "lexical"}
            start = running(server.command, server.port, server.ready, environ, folder / "run")
            with start as process:
                _print(_lines(bench, server, process))
    return 0


def _print(lines: Iterator[str]) -> None:
    for line in lines:
        print(line, flush=True)


def _lines(bench: Bench, server: Server, process: Running) -> Iterator[str]:
    idle = process.rss()
    for count in STREAMS:
        work = _work(bench, f"streams_{count}", _ask(f"{ASK} pace=500000 events=6", stream=True))
        work = Work(work.name, work.body, count, count, "event")
        sample = bench.sample(server, process, work)
        kept = (process.rss() - idle) / count / 1000
        yield f"streams {count:6}  {sample.cpu:9.1f} µs per event  {kept:9.1f} KB of RSS each"
    for count in TOOLS:
        work = _work(bench, f"tools_{count}", _ask(ASK) | {"tools": many_tools(count)})
        yield f"tools {count:8}  {_warm(bench, server, process, work):9.0f} µs"
    for count in MESSAGES:
        body = {"model": "m", "messages": history(count), "tools": many_tools(100)}
        work = _work(bench, f"messages_{count}", body)
        yield f"messages {count:5}  {_warm(bench, server, process, work):9.0f} µs"


def _warm(bench: Bench, server: Server, process: Running, work: Work) -> float:
    """The least of three rounds once the catalogue is prepared."""
    bench.sample(server, process, Work(work.name, work.body, 1, 2))
    before = -1.0
    while process.cpu() - before > 0.02:
        before = process.cpu()
        time.sleep(0.5)
    return min(bench.sample(server, process, work).cpu for _ in range(3))


def _work(bench: Bench, name: str, body: JSONObject) -> Work:
    bench.bodies[name] = bench.folder / f"{name}.json"
    bench.bodies[name].write_bytes(orjson.dumps(body))
    return Work(name, name, 4, 40)


def _ask(text: str, **more: bool) -> JSONObject:
    return {"model": "m", "messages": [{"role": "user", "content": text}]} | more


if __name__ == "__main__":
    sys.exit(main())
