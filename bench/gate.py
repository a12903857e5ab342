"""`make bench-gate`: ratios to an echo server in the same job come in; what grew too dear goes out.

Least of several interleaved rounds over least: another process on the machine only ever adds.
The limits leave half as much again as was measured, so noise does not trip them.
"""

import itertools
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.bodies import write_bodies
from bench.measure import Bench, Sample, Start, measure_starts, measure_works
from bench.process import free_port
from bench.programs import NoCompiler, build_programs
from bench.servers import Site, echo, usher
from bench.work import Work

ROUNDS = 4
SMALL = Work("small", "small", 16, 1200)
LARGE = Work("large", "large", 4, 80, settle=8.0)
STREAM = Work("stream", "stream", 16, 96, "event")
LIMITS: Mapping[tuple[str, str], float] = {
    ("usher", "small"): 10.0,
    ("usher", "large"): 2.0,
    ("usher", "stream"): 0.33,
}
"""CPU in requests of the echo server: the same body for `large`, a small one for the others."""
START_CPU = 12.0
IDLE_MB = 105.0


def main() -> int:
    """Measure, print each ratio with its limit, and fail when one is over it."""
    try:
        samples, starts = _measure()
    except NoCompiler:
        print("bench-gate: no C compiler here, so nothing was measured")
        return 0
    late = 0
    for name, found, limit in _judge(samples, starts):
        over = found > limit
        late += over
        print(f"{'OVER' if over else 'ok':4} {name:32} {found:8.2f}  limit {limit:.2f}")
    return 1 if late else 0


def _measure() -> tuple[list[Sample], list[Start]]:
    with tempfile.TemporaryDirectory(prefix="usher-gate-") as name:
        folder = Path(name)
        bodies = write_bodies(folder / "bodies", ("small", "large", "stream"))
        bench = Bench(build_programs(), bodies, folder)
        with bench.upstream() as upstream:
            sites = (Site(folder / "site", upstream, free_port()) for _ in itertools.count())
            servers = [usher(next(sites)), echo(next(sites))]
            starts = measure_starts(bench, servers, 2)
            works = (SMALL, LARGE, STREAM)
            return measure_works(bench, servers, works, ROUNDS, lambda _: None), starts


def _judge(samples: list[Sample], starts: list[Start]) -> Iterator[tuple[str, float, float]]:
    """What was measured, how much it was, and how much it may be."""
    for (server, work), limit in LIMITS.items():
        floor = _least(samples, "echo", "large" if work == "large" else "small")
        yield f"{server}, {work}, of an echo", _least(samples, server, work) / floor, limit
    own = [start for start in starts if start.server.startswith("usher")]
    floor = min(start.cpu for start in starts if start.server == "echo")
    yield "CPU of the start, of an echo's", min(start.cpu for start in own) / floor, START_CPU
    yield "RSS when idle, MB", min(start.rss for start in own) / 1e6, IDLE_MB


def _least(samples: list[Sample], server: str, work: str) -> float:
    return min(s.cpu for s in samples if (s.server, s.work) == (server, work) and not s.failed)


if __name__ == "__main__":
    sys.exit(main())
