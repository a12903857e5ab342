"""Imports and declarations come in; what is undeclared, unused or unexplained goes out."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import packages_distributions
from pathlib import Path

from checks.sources import Source, read_sources

BY_NAME = {
    "aiosqlite": "SQLAlchemy takes it from the database's URL",
    "asyncpg": "SQLAlchemy takes it from the database's URL",
    "litellm": "imported by name when a provider needs it",
    "uvloop": "uvicorn takes it as its event loop",
}
"""Packages that are used without an import statement, and how."""
PINNED = re.compile(r"(?m)^([A-Za-z0-9._-]+)==")
REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")


def check_dependencies(root: Path) -> list[str]:
    """Every import is declared, every declared package is used and has a reason in docs/."""
    declared = read_declared(root)
    providers = {
        name: {_plain(one) for one in own} for name, own in packages_distributions().items()
    }
    imports = list(find_imports(read_sources(root, "proxy")))
    used = {one for _, name in imports for one in providers.get(name, {_plain(name)})}
    undeclared = {
        f"{place}: {name} comes from no declared dependency"
        for place, name in imports
        if not declared & providers.get(name, {_plain(name)})
    }
    unused = [
        f"pyproject.toml: {name} is imported nowhere" for name in declared - used - set(BY_NAME)
    ]
    page = (root / "docs" / "dependencies.md").read_text(encoding="utf-8").lower()
    unexplained = [
        f"docs/dependencies.md: no reason for {name}"
        for name in sorted(declared)
        if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", page)
    ]
    return sorted(undeclared) + sorted(unused) + unexplained + check_lock(root, declared)


def check_lock(root: Path, declared: set[str]) -> list[str]:
    """What is declared and not pinned: the lock was not renewed."""
    lock = (root / "requirements-dev.lock").read_text(encoding="utf-8")
    pinned = {_plain(name) for name in PINNED.findall(lock)}
    return [
        f"requirements-dev.lock: {name} is not pinned; run `make lock`"
        for name in sorted(declared - pinned)
    ]


def read_declared(root: Path) -> set[str]:
    """The packages that the project or one of its extras asks for."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: Mapping[str, list[str]] = project.get("optional-dependencies", {})
    wanted = [*project["dependencies"], *(line for lines in extras.values() for line in lines)]
    return {_plain(match[0]) for line in wanted if (match := REQUIREMENT.match(line))}


def find_imports(sources: list[Source]) -> Iterator[tuple[str, str]]:
    """Where each foreign package is imported: ("proxy/a.py:3", "orjson")."""
    for source in sources:
        for line, name in _imports(source):
            if name not in {"proxy", *sys.stdlib_module_names}:
                yield f"{source.path}:{line}", name


def _imports(source: Source) -> Iterator[tuple[int, str]]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module.split(".")[0]


def _plain(name: str) -> str:
    return re.sub(r"[._-]+", "-", name).lower()
