"""`make bench`: flags come in; what Usher and its installed peers cost goes out."""

import argparse
import itertools
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from bench.bodies import write_bodies
from bench.measure import Bench, as_data, measure_starts, measure_works
from bench.process import free_port
from bench.programs import NoCompiler, build_programs
from bench.report import as_tables
from bench.servers import installed
from bench.work import WORKS


def main() -> int:
    """Measure and print."""
    flags = _read_flags()
    try:
        programs = build_programs()
    except NoCompiler:
        print("bench: needs a C compiler for its upstream and load client", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="usher-bench-") as name:
        folder = Path(name)
        bench = Bench(programs, write_bodies(folder / "bodies"), folder)
        with bench.upstream() as upstream:
            ports = (free_port() for _ in itertools.count())
            servers = [
                server
                for server in installed(folder / "site", upstream, ports)
                if not flags.only or server.name.startswith(tuple(flags.only.split(",")))
            ]
            works = [work for work in WORKS if flags.work in work.name]
            began = os.getloadavg()[0]
            starts = measure_starts(bench, servers, min(flags.rounds, 3))
            samples = measure_works(bench, servers, works, flags.rounds, _say)
    load = f"{began:.1f} → {os.getloadavg()[0]:.1f}"
    if flags.json:
        found = {"load": load, "at": time.time(), "rounds": flags.rounds}
        print(json.dumps(found | {"starts": as_data(starts), "samples": as_data(samples)}))
    else:
        print(f"\n{flags.rounds} rounds, interleaved; median [least–most]; load average {load}\n")
        print(as_tables(samples, starts))
    return 0


def _read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="samples instead of tables")
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds of each work")
    parser.add_argument("--only", default="", help="servers by the beginning of their name")
    parser.add_argument("--work", default="", help="works by a part of their name")
    return parser.parse_args()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
