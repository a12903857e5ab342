"""A closed terminal is told from a wish for a reload."""

import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from proxy.edge.hangup import SIGHUP

_PROGRAM = """
import os, signal, sys, time
from proxy.edge.hangup import Terminal
os.setsid()
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it would be ignored
os.close(os.open(os.ttyname(0), os.O_RDWR))  # becomes the controlling terminal
{before}
terminal = Terminal()
read, write = os.pipe()
signal.signal(signal.SIGHUP, lambda *_: os.write(write, b"!"))
os.write(2, b"ready")
os.read(read, 1)
os.write(2, str(terminal.gone).encode())
"""
_IGNORE = "signal.signal(signal.SIGHUP, signal.SIG_IGN)"


@pytest.mark.skipif(SIGHUP is None, reason="there is no SIGHUP here")
@pytest.mark.parametrize(
    ("before", "close", "gone"),
    [("", True, b"True"), ("", False, b"False"), (_IGNORE, True, b"False")],
)
def test_a_closed_terminal(before: str, gone: bytes, *, close: bool) -> None:
    """After that a process should stop, unless it was started with nohup; a signal only reloads."""
    outside, inside = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM.format(before=before)],
        stdin=inside,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    os.close(inside)
    with process:
        assert process.stderr is not None
        assert process.stderr.read(5) == b"ready"
        if close:
            os.close(outside)
        else:
            process.send_signal(signal.SIGHUP)
        assert select.select([process.stderr], [], [], 30)[0]
        assert process.stderr.read() == gone
    if not close:
        os.close(outside)
