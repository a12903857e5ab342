"""Running servers and kinds of work come in; samples of CPU, latency and memory go out."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.process import NotReady, Running, free_port, running
from bench.programs import Programs
from bench.servers import Server
from bench.work import Work, requests_for

IDLE_SECONDS = 0.5
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Sample:
    """One round of one kind of work on one server; times in µs, per request or per event."""

    server: str
    work: str
    cpu: float
    per_second: float
    p50: float
    p99: float
    first_p50: float
    failed: int
    events: int
    rss: int


@dataclass(frozen=True, slots=True)
class Start:
    """A server's start: seconds to the first 200, of CPU until then, bytes when idle."""

    server: str
    seconds: float
    cpu: float
    rss: int


@dataclass(frozen=True, slots=True)
class Bench:
    """What a measurement needs."""

    programs: Programs
    bodies: dict[str, Path]
    folder: Path

    @contextmanager
    def upstream(self) -> Iterator[int]:
        """The fake upstream's port, while the block runs."""
        port = free_port()
        child = subprocess.Popen([self.programs.upstream, str(port)])
        try:
            yield port
        finally:
            child.terminate()
            child.wait()

    def load(self, port: int, work: Work, requests: int, headers: str) -> dict[str, float]:
        """One run of the load client."""
        path = self.folder / f"headers-{port}"
        path.write_text(headers)
        words = [str(port), "/v1/chat/completions", str(self.bodies[work.body])]
        words += [str(work.connections), str(work.seconds), str(path), str(requests)]
        done = subprocess.run([self.programs.load, *words], check=True, capture_output=True)
        found: dict[str, float] = json.loads(done.stdout)
        return found

    def sample(self, server: Server, process: Running, work: Work) -> Sample:
        """One round."""
        before = process.cpu()
        found = self.load(server.port, work, requests_for(work, server.name), server.headers)
        spent = process.cpu() - before
        count = found["events"] if work.unit == "event" else found["answers"]
        return Sample(
            server=server.name,
            work=work.name,
            cpu=spent / max(count, 1) * 1e6,
            per_second=count / found["seconds"],
            p50=found["p50"],
            p99=found["p99"],
            first_p50=found["first_p50"],
            failed=int(found["failures"] + found["refusals"]),
            events=int(found["events"]),
            rss=process.rss(),
        )


def measure_starts(bench: Bench, servers: Sequence[Server], rounds: int) -> list[Start]:
    """Start each server several times, interleaved."""
    starts = []
    for _ in range(rounds):
        for server in servers:
            with suppress(NotReady), _run(bench, server) as process:
                cpu = process.cpu()
                time.sleep(IDLE_SECONDS)
                starts.append(Start(server.name, process.start_seconds, cpu, process.rss()))
    return starts


def measure_works(
    bench: Bench, servers: Sequence[Server], works: Sequence[Work], rounds: int, say: Say
) -> list[Sample]:
    """Every work on every server, interleaved; the first round warms up and is dropped."""
    samples: list[Sample] = []
    with ExitStack() as stack:
        up = [
            (server, process)
            for server in servers
            if (process := _try(bench, server, stack, say)) is not None
        ]
        for work in works:
            say(work.name)
            here = [one for one in up if work.peers or one[0].name.startswith(("usher", "echo"))]
            samples += _rounds(bench, here, work, rounds)
    return samples


def _rounds(
    bench: Bench, here: Sequence[tuple[Server, Running]], work: Work, rounds: int
) -> list[Sample]:
    for server, process in here:
        bench.sample(server, process, work)
    time.sleep(work.settle)
    return [bench.sample(server, process, work) for _ in range(rounds) for server, process in here]


def _try(bench: Bench, server: Server, stack: ExitStack, say: Say) -> Running | None:
    try:
        return stack.enter_context(_run(bench, server))
    except NotReady as error:
        say(f"{server.name}: {error}")
        return None


def as_data(things: Sequence[Sample] | Sequence[Start]) -> list[dict[str, object]]:
    return [asdict(thing) for thing in things]


def _run(bench: Bench, server: Server) -> AbstractContextManager[Running]:
    folder = bench.folder / "run" / server.name.replace(" ", "-")
    return running(server.command, server.port, server.ready, server.environ, folder)
