"""The numbers of several processes, summed, whichever of them is asked."""

import os
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest

from proxy.observe.board import Board, Family, Sample, merge, retire
from proxy.observe.levels import Levels


class Process:
    """One that counts."""

    def __init__(self, folder: Path) -> None:
        self.registry = CollectorRegistry()
        self.answers = Counter("answers_total", "Answers.", ["status"], registry=self.registry)
        self.running = Gauge("running", "Running.", registry=self.registry)
        self.stale = Gauge("usher_config_stale", "Stale.", registry=self.registry)
        self.breakers = Levels("usher_judge_breaker_open", "Open.", "backend", self.registry)
        self.seconds = Histogram("seconds", "Time.", buckets=(1, 2), registry=self.registry)
        self.board = Board(folder, self.registry)

    def text(self) -> str:
        """What it answers to a scrape."""
        return generate_latest(self.board.gather()).decode()


def test_any_process_answers_for_all(tmp_path: Path) -> None:
    """Counters and histograms add up, with labels that only one of them has; so do gauges."""
    one, other = Process(tmp_path), Process(tmp_path)
    one.answers.labels("200").inc(2)
    other.answers.labels("200").inc(3)
    other.answers.labels("404").inc()
    one.running.set(1)
    other.running.set(2)
    one.seconds.observe(0.5)
    other.seconds.observe(1.5)
    other.board.publish()
    text = one.text()
    assert 'answers_total{status="200"} 5.0' in text
    assert 'answers_total{status="404"} 1.0' in text
    assert "running 3.0" in text
    assert 'seconds_bucket{le="1.0"} 1.0' in text
    assert 'seconds_bucket{le="2.0"} 2.0' in text
    assert "seconds_sum 2.0" in text
    assert "# TYPE seconds histogram" in text


def test_what_is_true_anywhere_is_true(tmp_path: Path) -> None:
    """Not two of it."""
    one, other = Process(tmp_path), Process(tmp_path)
    one.stale.set(1)
    other.stale.set(1)
    one.breakers.follow(lambda: {"a": 1, "b": 0})
    other.breakers.follow(lambda: {"a": 1, "b": 1, "c": 0})
    other.board.publish()
    text = one.text()
    assert "usher_config_stale 1.0" in text
    for name, state in {"a": 1, "b": 1, "c": 0}.items():
        assert f'usher_judge_breaker_open{{backend="{name}"}} {state}.0' in text


def test_a_counter_never_goes_back(tmp_path: Path) -> None:
    """Not when the other process is asked next, nor when one has ended; its gauges are gone."""
    one, other = Process(tmp_path), Process(tmp_path)
    one.answers.labels("200").inc(2)
    one.running.set(7)
    assert 'answers_total{status="200"} 2.0' in one.text()
    assert 'answers_total{status="200"} 2.0' in other.text()
    retire(tmp_path, os.getpid())
    other.answers.labels("200").inc()
    text = other.text()
    assert 'answers_total{status="200"} 3.0' in text
    assert "running 0.0" in text


def test_a_folder_that_is_gone_stops_nothing(tmp_path: Path) -> None:
    """The first process takes it along when it ends."""
    folder = tmp_path / "gone"
    Board(folder, CollectorRegistry()).publish()
    assert not folder.exists()


def test_created_is_when_the_first_began() -> None:
    """As every other time of a start."""
    families = [
        [Family("a", "A.", "counter", [Sample("a_created", (), at), Sample("a_total", (), 1)])]
        for at in (5.0, 3.0)
    ]
    (merged,) = merge(families)
    assert [sample.value for sample in merged.samples] == [3.0, 2]
