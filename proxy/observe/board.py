"""What each process of a gateway counted comes in; the sums over all of them go out.

Every process leaves its numbers in a folder once a second and before it answers a scrape, and a
scrape is answered from the folder only. So whichever process is asked, a counter never goes back:
not when another one is asked next, and not when one was killed. Counting itself costs what it
costs in a single process.
"""

import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

LARGEST = frozenset({
    "usher_config_stale", "usher_keys_unenforced", "usher_judge_breaker_open",
    "usher_ledger_degraded",
})  # fmt: skip
"""Gauges that are true when they are true anywhere."""
LEAST = frozenset({"process_start_time_seconds", "process_max_fds", "usher_config_hash"})
_LIVING, _GONE = ".json", ".gone"

Labels = tuple[tuple[str, str], ...]


class Sample(msgspec.Struct, array_like=True):
    """One number."""

    name: str
    labels: Labels
    value: float


class Family(msgspec.Struct, array_like=True):
    """A metric with its numbers."""

    name: str
    text: str
    kind: str
    samples: list[Sample]


class Board:
    """One process's place in the folder."""

    def __init__(self, folder: Path, registry: CollectorRegistry) -> None:
        self._folder = folder
        self._registry = registry
        self._own = folder / f"{os.getpid()}-{secrets.token_hex(4)}{_LIVING}"
        self._known: set[str] = set()
        self._publishing = Lock()

    def publish(self) -> None:
        """Leave the numbers of now; readers see these or those before."""
        new = self._own.with_suffix(".new")
        with self._publishing, suppress(OSError):  # the folder goes with the first process
            new.write_bytes(msgspec.json.encode(list(read_registry(self._registry))))
            new.replace(self._own)

    def gather(self) -> CollectorRegistry:
        """The sums over all processes, as something to be rendered."""
        self.publish()
        # Whoever was seen once is looked for again: a listing may miss what is being renamed.
        self._known |= {file.stem for file in self._folder.iterdir() if file.suffix != ".new"}
        registry = CollectorRegistry()
        processes = (read_process(self._folder, stem) for stem in sorted(self._known))
        registry.register(_Summed(merge(processes)))
        return registry


class _Summed(Collector):
    def __init__(self, families: Iterable[Family]) -> None:
        self._families = list(families)

    def collect(self) -> Iterator[Metric]:
        for family in self._families:
            metric = Metric(family.name, family.text, family.kind)
            for sample in family.samples:
                metric.add_sample(sample.name, dict(sample.labels), sample.value)
            yield metric


def retire(folder: Path, process: int) -> None:
    """Keep what a process counted that has ended; what it had open or running is nothing now."""
    for file in folder.glob(f"{process}-*{_LIVING}"):
        with suppress(OSError):
            file.rename(file.with_suffix(_GONE))


def read_registry(registry: CollectorRegistry) -> Iterator[Family]:
    """The numbers of this process."""
    for metric in registry.collect():
        samples = [
            Sample(sample.name, tuple(sample.labels.items()), sample.value)
            for sample in metric.samples
        ]
        yield Family(metric.name, metric.documentation, metric.type, samples)


def read_process(folder: Path, stem: str) -> Sequence[Family]:
    """The numbers of one process; without gauges when it has ended."""
    families = _read(folder / f"{stem}{_LIVING}")
    if families:
        return families
    return [one for one in _read(folder / f"{stem}{_GONE}") if one.kind != "gauge"]


def merge(processes: Iterable[Sequence[Family]]) -> Iterator[Family]:
    """One family per name; counters and histograms add up, gauges by what they mean."""
    order: dict[str, Family] = {}
    numbers: dict[tuple[str, str, Labels], Sample] = {}
    for family in (family for families in processes for family in families):
        merged = order.setdefault(family.name, Family(family.name, family.text, family.kind, []))
        for sample in family.samples:
            key = (family.name, sample.name, sample.labels)
            known = numbers.get(key)
            if known is None:
                numbers[key] = known = Sample(*msgspec.structs.astuple(sample))
                merged.samples.append(known)
            else:
                known.value = _add(known, sample.value)
    yield from order.values()


def _add(known: Sample, value: float) -> float:
    if known.name in LARGEST:
        return max(known.value, value)
    if known.name in LEAST or known.name.endswith("_created"):
        return min(known.value, value)
    return known.value + value


def _read(file: Path) -> list[Family]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[Family])
    except (OSError, msgspec.DecodeError):
        return []
