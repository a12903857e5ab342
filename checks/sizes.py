"""Sources come in; every module or function over its cap, and the five longest of each, go out."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from checks.sources import Source, read_sources

MODULE_CAP = 400
FUNCTION_CAP = 80


def check_sizes(root: Path) -> list[str]:
    """Modules over 400 lines and functions over 80; tests are held to the same."""
    folders = ("proxy", "tests", "checks", "bench")
    sources = [source for folder in folders for source in read_sources(root, folder)]
    modules = [
        f"{source.path}: {source.lines} lines, at most {MODULE_CAP}"
        for source in sources
        if source.lines > MODULE_CAP
    ]
    functions = [
        f"{place}: {length} lines, at most {FUNCTION_CAP}"
        for length, place in measure_functions(sources)
        if length > FUNCTION_CAP
    ]
    return modules + functions


def measure_functions(sources: Sequence[Source]) -> Iterator[tuple[int, str]]:
    """The length of each function with its place."""
    for source in sources:
        for function in source.functions():
            length = (function.end_lineno or function.lineno) - function.lineno + 1
            yield length, f"{source.path}:{function.lineno} {function.name}"


def summarise(root: Path) -> str:
    """The five longest modules and functions of `proxy`, and the medians."""
    sources = read_sources(root, "proxy")
    modules = sorted(((source.lines, str(source.path)) for source in sources), reverse=True)
    functions = sorted(measure_functions(sources), reverse=True)
    full = [lines for lines, _ in modules if lines > 3]
    lines = [
        f"modules: {len(full)}, median {median(full):.0f} lines, comments {_comments(sources):.1%}",
        *(f"  {length:4} {name}" for length, name in modules[:5]),
        f"functions: {len(functions)}, median {median(size for size, _ in functions):.0f} lines",
        *(f"  {length:4} {name}" for length, name in functions[:5]),
    ]
    return "\n".join(lines)


def _comments(sources: Sequence[Source]) -> float:
    comments = sum(1 for source in sources for _ in source.comments())
    return comments / max(sum(source.lines for source in sources), 1)
