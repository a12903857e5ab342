"""Samples come in; a Markdown table per question goes out: medians with their range."""

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from bench.measure import Sample, Start

MB = 1_000_000


def as_tables(samples: Sequence[Sample], starts: Sequence[Start]) -> str:
    """All tables."""
    return "\n\n".join(filter(None, (_works(samples), _starts(starts, samples))))


def _works(samples: Sequence[Sample]) -> str:
    servers = list(dict.fromkeys(sample.server for sample in samples))
    works = list(dict.fromkeys(sample.work for sample in samples))
    tables: list[tuple[str, Callable[[Sample], float]]] = [
        ("CPU µs (per event for streams)", lambda s: s.cpu),
        ("median latency, µs", lambda s: s.p50),
        ("first byte of a stream, median µs", lambda s: s.first_p50),
        ("events or requests per second", lambda s: s.per_second),
    ]
    texts = []
    for title, value in tables:
        shown = [work for work in works if "stream" in work] if "stream, m" in title else works
        rows = [
            [work, *(_cell([value(s) for s in _of(samples, server, work)]) for server in servers)]
            for work in shown
        ]
        texts.append(_table([title, *servers], rows))
    broken = {(s.server, s.work) for s in samples if s.failed}
    notes = [f"{server} failed some of: {work}" for server, work in sorted(broken)]
    return "\n\n".join([*texts, *notes])


def _starts(starts: Sequence[Start], samples: Sequence[Sample]) -> str:
    rows = []
    for server in dict.fromkeys(start.server for start in starts):
        own = [start for start in starts if start.server == server]
        peak = max((sample.rss for sample in samples if sample.server == server), default=0)
        rows.append(
            [
                server,
                _cell([start.seconds for start in own], 2),
                _cell([start.cpu for start in own], 2),
                _cell([start.rss / MB for start in own]),
                f"{peak / MB:.0f}",
            ]
        )
    head = ["", "start to first 200, s", "CPU of the start, s", "RSS idle, MB", "highest, MB"]
    return _table(head, rows) if rows else ""


def _of(samples: Iterable[Sample], server: str, work: str) -> list[Sample]:
    return [sample for sample in samples if (sample.server, sample.work) == (server, work)]


def _cell(values: Sequence[float], digits: int = 0) -> str:
    """A median with its range; few digits where there are many before the point."""
    if not values:
        return "–"
    digits = digits or (2 if max(values) < 10 else 0)
    low, middle, high = min(values), median(values), max(values)
    return f"{middle:,.{digits}f} [{low:,.{digits}f}–{high:,.{digits}f}]"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
