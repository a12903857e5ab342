"""What the allocator is told."""

import platform
import subprocess
import sys

import pytest

from proxy.edge.heap import keep_large_blocks, unwritten

FREED = """
import resource
from proxy.edge.heap import keep_large_blocks, unwritten
assert keep_large_blocks({})
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
blocks = [bytearray(10 << 20) for _ in range(3)]; del blocks
before = faults()
for _ in range(20):
    blocks = [bytearray(10 << 20) for _ in range(3)]; del blocks
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="an allocator of another kind")
def test_freed_blocks_are_used_again() -> None:
    """Bodies of megabytes, need no new pages from the system but the first time."""
    done = subprocess.run([sys.executable, "-c", FREED], check=True, capture_output=True, text=True)
    assert int(done.stdout) < 7_680, "20 times 7,680 pages"


@pytest.mark.parametrize(
    ("name", "value"),
    [("MALLOC_TRIM_THRESHOLD_", "1000"), ("GLIBC_TUNABLES", "glibc.malloc.top_pad=0")],
)
def test_operators_settings_win(name: str, value: str) -> None:
    """Whoever tunes the allocator from outside knows why."""
    assert not keep_large_blocks({name: value})


def test_unwritten_bytes_have_their_size() -> None:
    """They are an object of their own, which nobody else holds."""
    assert [len(unwritten(size)) for size in (2, 70_000)] == [2, 70_000]
    assert unwritten(70_000) is not unwritten(70_000)
