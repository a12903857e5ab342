"""The process that counts: what it says, and what becomes of a count when it misbehaves."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from proxy.tools.counter import BATCH_TEXTS, Counter, NoCounter


@pytest.fixture
def counter() -> Iterator[Counter]:
    one = Counter()
    yield one
    one.close()


def scripted(code: str, seconds: float = 5.0) -> Counter:
    return Counter([sys.executable, "-c", code], seconds)


def children_of(counter: Counter) -> "subprocess.Popen[bytes]":
    child = counter._child
    assert child is not None
    return child


def test_counts_by_the_batch(counter: Counter) -> None:
    """Any number of texts, of any kind, each gets its own number."""
    texts = ["hello world", "", "日本語", "a\ud800b", "x" * 300_000, *(["word"] * 3 * BATCH_TEXTS)]
    counts = counter.count(texts)
    assert counts is not None
    assert len(counts) == len(texts)
    assert counts[:2] == [2, 0]
    assert counter.count([]) == []


def test_threads_do_not_mix_up_their_answers(counter: Counter) -> None:
    """Questions of several threads take turns."""
    wrong: list[object] = []

    def ask(word: str, expected: int) -> None:
        for _ in range(50):
            found = counter.count([word] * 5)
            if found != [expected] * 5:
                wrong.append(found)

    threads = [
        threading.Thread(target=ask, args=args) for args in (("hello", 1), ("hello world", 2))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_process_that_was_ended_is_started_again(counter: Counter) -> None:
    """It ends when it is idle, and a system short of memory may end it, too."""
    assert counter.count(["hello world"]) == [2]
    first = children_of(counter)
    first.kill()
    first.wait()
    assert counter.count(["hello world"]) == [2]
    assert children_of(counter).pid != first.pid


def test_nothing_is_left_running() -> None:
    """Closing ends the process; closing twice is fine."""
    counter = Counter()
    counter.count(["hello"])
    child = children_of(counter)
    counter.close()
    counter.close()
    assert child.poll() is not None


@pytest.mark.parametrize(
    "code",
    ["raise SystemExit(3)", "print('garbage, and plenty of it')", "import os; os.close(1)"],
    ids=["dies", "garbage", "silent"],
)
def test_process_that_cannot_count_is_given_up(code: str) -> None:
    """Whatever it does instead of counting is noticed at once."""
    with pytest.raises(NoCounter):
        scripted(code).count(["hello"])


def test_missing_program_is_no_counter() -> None:
    """A system that starts no process is told apart from one without a vocabulary."""
    with pytest.raises(NoCounter):
        Counter(["/nowhere/python"]).count(["hello"])


def test_process_that_hangs_is_waited_for_once() -> None:
    """The deadline counts, and after it nobody waits for it again."""
    counter = scripted("import time; time.sleep(60)", seconds=0.3)
    with pytest.raises(NoCounter):
        counter.count(["hello"])
    began = time.monotonic()
    with pytest.raises(NoCounter):
        counter.count(["hello"])
    assert time.monotonic() - began < 0.2


def test_lack_of_a_vocabulary_is_said() -> None:
    """Without one there is no number, and no error either: it is estimated then."""
    code = "import sys; sys.stdin.buffer.read(4); sys.stdout.buffer.write(b'\\xff' * 4)"
    assert scripted(code).count(["hello"]) is None


def test_process_that_is_kept_outlives_its_idleness() -> None:
    """Whoever counts on the event loop cannot wait for a vocabulary again and again."""
    echo = (
        "import sys, time\n"
        "while head := sys.stdin.buffer.read(8):\n"
        "    sys.stdin.buffer.read(head[4])\n"
        "    kept = '--stay' in sys.argv\n"
        "    sys.stdout.buffer.write(bytes([1, 0, 0, 0, kept, 0, 0, 0]))\n"
        "    sys.stdout.flush()\n"
    )
    counter = scripted(echo)
    assert counter.count(["hello"]) == [0]
    counter.keep()
    counter.keep()
    assert counter.count(["hello"]) == [1]
    counter.close()


@pytest.mark.parametrize("text", ["hello", "x y " * 100_000], ids=["short", "long"])
def test_process_that_is_stopped_costs_the_deadline_at_most(text: str) -> None:
    """Neither its answer nor the room in its pipe is waited for any longer."""
    counter = Counter(seconds=2.0)
    assert counter.count(["hello world"]) == [2]
    children_of(counter).send_signal(signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(NoCounter):
        counter.count([text])
    assert time.monotonic() - began < 10


def test_many_open_descriptors_are_no_obstacle() -> None:
    """A busy gateway has thousands of connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(3_000, hard), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]
    counter = Counter()
    try:
        assert counter.count(["hello world"]) == [2]
    finally:
        counter.close()
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
