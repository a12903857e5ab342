"""How large blocks of memory are taken: kept for the next request, and not zeroed before use.

Left alone, glibc maps a block of 128 KB or more from the system and gives it back when it is freed.
A gateway frees a body to receive the next one: each page is then zeroed and mapped anew, which made
half of what a body of 9 MB costs.
"""

import ctypes
import os
from collections.abc import Callable, Mapping
from contextlib import suppress

# The numbers of <malloc.h>.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
LARGEST_BYTES = 32 * 1024 * 1024
"""Blocks up to here come from the heap; glibc accepts no more."""
SPARE_BYTES = 64 * 1024 * 1024
"""Free memory at the end of the heap that is kept; what is beyond goes back to the system."""

_TUNED = frozenset({"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_"})


def _find_maker() -> Callable[[None, int], bytes] | None:
    """CPython's own way to make bytes that are yet to be written; None elsewhere."""
    try:
        make = ctypes.pythonapi.PyBytes_FromStringAndSize
    except AttributeError:
        return None
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_char_p, ctypes.c_ssize_t)
    return make


_MAKE = _find_maker()


def unwritten(size: int) -> bytes:
    """Bytes with anything in them, for who writes all of them before anybody reads one."""
    return bytes(size) if _MAKE is None else _MAKE(None, size)


def keep_large_blocks(environ: Mapping[str, str] = os.environ) -> bool:
    """Set both limits once, at the start; an operator who set some in the environment is obeyed."""
    if not _TUNED.isdisjoint(environ) or "malloc" in environ.get("GLIBC_TUNABLES", ""):
        return False
    with suppress(AttributeError, OSError):  # not glibc
        mallopt = ctypes.CDLL(None).mallopt
        return bool(
            mallopt(_MMAP_THRESHOLD, LARGEST_BYTES) and mallopt(_TRIM_THRESHOLD, SPARE_BYTES)
        )
    return False
