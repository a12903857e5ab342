"""Runs every gate, prints what each found, and exits 1 when any found something."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from checks.dependencies import check_dependencies
from checks.items import check_items
from checks.mirror import check_mirror
from checks.parity import check_parity
from checks.prose import check_prose
from checks.reference import check_reference
from checks.sizes import check_sizes, summarise

Gate: TypeAlias = Callable[[Path], Sequence[str]]

TOOLS = {
    "ruff check": ["ruff", "check", "--quiet", "--output-format=concise", "."],
    "ruff format": ["ruff", "format", "--quiet", "--check", "--output-format=concise", "."],
    "mypy": ["mypy", "--no-error-summary"],
    "import-linter": ["lint-imports", "--no-cache"],
}
GATES: dict[str, Gate] = {
    "sizes": check_sizes,
    "test mirror": check_mirror,
    "prose": check_prose,
    "reference files": check_reference,
    "docs parity": check_parity,
    "dependencies": check_dependencies,
    "edge cases": check_items,
}


def main() -> int:
    root = Path(__file__).resolve().parent.parent
    failed = [name for name, command in TOOLS.items() if not run_tool(name, command, root)]
    failed += [name for name, gate in GATES.items() if not report(name, gate(root))]
    print(summarise(root))
    return 1 if failed else 0


def run_tool(name: str, command: Sequence[str], root: Path) -> bool:
    """Run one of the linters from the environment that runs this."""
    program = Path(sys.executable).with_name(command[0])
    done = subprocess.run(
        [program, *command[1:]], cwd=root, capture_output=True, text=True, check=False
    )
    output = (done.stdout + done.stderr).split("Broken contracts\n")[-1].strip()
    return report(name, output.splitlines() or ["failed"] if done.returncode else [])


def report(name: str, problems: Sequence[str]) -> bool:
    """Print a gate's result; true when it found nothing."""
    print(f"{name}: {'ok' if not problems else 'FAILED'}")
    for problem in problems:
        print(f"  {problem}")
    return not problems


if __name__ == "__main__":
    sys.exit(main())
