"""What memory is built from."""

import subprocess
import sys


def test_nothing_is_loaded_before_memory_is_on() -> None:
    """SQLAlchemy costs 25 MB, which a gateway without memory does not pay."""
    code = "import sys, proxy.turn, proxy.memory.near; sys.exit('sqlalchemy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
