"""C sources come in; the fake upstream and the load client go out, compiled once."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parent / "src"
CACHE = Path(__file__).parent.parent / ".cache" / "bench"


class NoCompiler(Exception):
    """Neither gcc, clang nor cc is here; Python programs would measure themselves."""


@dataclass(frozen=True, slots=True)
class Programs:
    """The two programs; neither is ever the bottleneck."""

    upstream: Path
    load: Path


def build_programs() -> Programs:
    """Compile what is older than its source. Raises NoCompiler."""
    folder = CACHE / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    return Programs(_build(folder, "upstream"), _build(folder, "load"))


def _build(folder: Path, name: str) -> Path:
    program, sources = folder / name, [SOURCES / f"{name}.c", SOURCES / "wire.h"]
    if program.exists() and program.stat().st_mtime > max(s.stat().st_mtime for s in sources):
        return program
    compiler = next(filter(None, map(shutil.which, ("gcc", "clang", "cc"))), None)
    if compiler is None:
        raise NoCompiler
    subprocess.run([compiler, "-O2", "-o", program, sources[0]], check=True)
    return program
