"""The list of edge cases and the tests that claim them come in; docs/edge-cases.md goes out.

`make items` writes it; `make check` fails on an item without a test, a marker without an item and
a page that is not what it would write.
"""

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from checks.sources import read_sources

LIST = Path("tests/edge_items.toml")
PAGE = Path("docs/edge-cases.md")
HEAD = """\
# Edge cases

What deferral and memory must survive, and the tests that hold them to that. Written by
`make items` from `tests/edge_items.toml` and the tests' `item` markers.
"""

Items: TypeAlias = Mapping[str, str]
Claims: TypeAlias = Mapping[str, Sequence[str]]


def check_items(root: Path) -> list[str]:
    """Items without a test, markers without an item, and a stale page."""
    if not (root / LIST).exists():
        return []
    items, claims = read_items(root), find_claims(root)
    untested = [f"{LIST}: no test claims {name}" for name in items if name not in claims]
    unknown = [
        f"{test}: there is no item {name}"
        for name, tests in claims.items()
        if name not in items
        for test in tests
    ]
    page = root / PAGE
    fresh = page.exists() and page.read_text(encoding="utf-8") == render_page(items, claims)
    stale = [] if fresh else [f"{PAGE}: not what the tests say; run `make items`"]
    return untested + unknown + stale


def read_items(root: Path) -> dict[str, str]:
    """`area/id` of every item with its line."""
    areas = tomllib.loads((root / LIST).read_text(encoding="utf-8"))
    return {f"{area}/{name}": text for area, lines in areas.items() for name, text in lines.items()}


def find_claims(root: Path) -> dict[str, list[str]]:
    """The tests that claim each item, by their path and name."""
    claims = defaultdict[str, list[str]](list)
    for source in read_sources(root, "tests"):
        for function in source.functions():
            for name in dict.fromkeys(_read_marks(function)):
                claims[name].append(f"{source.path.relative_to('tests')}::{function.name}")
    return dict(claims)


def render_page(items: Items, claims: Claims) -> str:
    """A table per area: what the item is, and its tests."""
    lines = [HEAD.rstrip("\n")]
    area = ""
    for name, text in items.items():
        if not name.startswith(f"{area}/"):
            area = name.partition("/")[0]
            lines += ["", f"## {area}", "", "| item | tests |", "|---|---|"]
        tests = "<br>".join(f"`{test}`" for test in claims.get(name, ()))
        lines.append(f"| {text} | {tests} |")
    return "\n".join(lines) + "\n"


def _read_marks(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """What `pytest.mark.item` says above a test, on one of its parameters as well."""
    for decorator in function.decorator_list:
        for node in ast.walk(decorator):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.item":
                yield from (
                    argument.value
                    for argument in node.args
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
                )


if __name__ == "__main__":
    here = Path.cwd()
    (here / PAGE).write_text(render_page(read_items(here), find_claims(here)), encoding="utf-8")
