"""Every header, URL, metric and command comes in; those that no page of docs/ names go out."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import typer
from typer.core import TyperGroup
from typer.main import get_command

from checks.sources import read_sources
from proxy.cli import app
from proxy.plan import policy

HEADER = re.compile(r"x-usher-[a-z]+(?:-[a-z]+)*")
PATH = re.compile(r'"(/(?:usher|v1|health|livez|readyz|metrics)[a-z_/{}]*)"')
METRIC = re.compile(r"usher_[a-z]+(?:_[a-z]+)+")


def check_parity(root: Path) -> list[str]:
    """Each header, URL, metric, command and option of a command appears in a page of docs/."""
    docs = root / "docs"
    pages = {page.name: page.read_text(encoding="utf-8") for page in docs.glob("*.md")}
    everything = "\n".join(pages.values())
    wanted = [("header", name, pages.get("headers.md", "")) for name in sorted(find_headers(root))]
    wanted += [("path", name, pages.get("http.md", "")) for name in sorted(find_paths(root))]
    wanted += [("metric", name, everything) for name in sorted(find_metrics(root))]
    wanted += [("command", name, pages.get("commands.md", "")) for name in find_commands()]
    return [
        f"docs: the {kind} `{name}` is on no page"
        for kind, name, text in wanted
        if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)
    ]


def find_headers(root: Path) -> set[str]:
    """Every `x-usher-…` that the code spells, and every wish that a request can state."""
    texts = (source.text for source in read_sources(root, "proxy"))
    wishes = (*policy._CHOICES, *policy._FREE)  # noqa: SLF001 - the one list of them
    return {name for text in texts for name in HEADER.findall(text)} | {
        f"x-usher-{name}" for name in wishes
    }


def find_paths(root: Path) -> set[str]:
    """Every URL that the edge spells as a route of its own."""
    return {
        path for source in read_sources(root, "proxy/edge") for path in PATH.findall(source.text)
    }


def find_metrics(root: Path) -> set[str]:
    """Every name in the code that counts and measures."""
    return {
        node.value
        for source in read_sources(root, "proxy/observe")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and METRIC.fullmatch(node.value)
    }


def find_commands() -> list[str]:
    """`usher serve`, `usher eval gate` and each option that a command has of its own."""
    root = get_command(app)
    return sorted(set(_names(root, "usher"))) if isinstance(root, TyperGroup) else []


def _names(group: TyperGroup, path: str) -> Iterator[str]:
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None:
            continue
        yield f"{path} {name}"
        if isinstance(command, TyperGroup):
            yield from _names(command, f"{path} {name}")
        for parameter in command.params:
            yield from (option for option in parameter.opts if option.startswith("--"))
