"""Sources and committed texts come in; broken house rules that no linter knows go out."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from checks.sources import Source, read_sources, read_texts

VAGUE_NAMES = {"utils", "util", "helpers", "helper", "manager", "handler", "common", "misc", "base"}
GUARDS = 2
SUPPRESSION = re.compile(
    r"#\s*(?:noqa(?::\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)?|type:\s*ignore(?:\[[\w,\s-]+\])?|pragma:.*)"
    r"(?P<reason>.*)"
)
FORBIDDEN_TEXT = {
    "a package registry's address": re.compile(
        r"https?://[^\s/]*(?:pypi\.org|pythonhosted\.org|npmjs\.org|npmjs\.com|npmmirror)"
    ),
    "a path of one machine": re.compile(r"(?<![\w.])/(?:work|root|home/[a-z]+)/[\w.]"),
    "a credential": re.compile(r"\bsk-(?:proj-)?[A-Za-z0-9]{32,}|\bAKIA[A-Z0-9]{16}\b"),
}
UNREAD = {"data", "cassettes", "node_modules"}


def check_prose(root: Path) -> list[str]:
    """Docstrings, names, reasons for suppressions, broad guards, foreign addresses."""
    code = read_sources(root, "proxy")
    tests = read_sources(root, "tests")
    found = [line for source in code + tests for line in check_source(source)]
    found += [line for source in code for line in check_names(source)]
    found += [line for source in tests for line in check_tests(source)]
    found += check_guards(code)
    found += [line for path, text in read_texts(root) for line in check_text(path, text)]
    return found


def check_source(source: Source) -> Iterator[str]:
    """A module opens with one sentence; whoever silences a tool says why."""
    opening = (ast.get_docstring(source.tree) or "").split("\n\n")[0]
    if source.text.strip() and not opening.endswith((".", ":", "!", "?")):
        yield f"{source.path}:1: open the module with one sentence: what enters, what leaves"
    for number, comment in source.comments():
        match = SUPPRESSION.match(comment)
        if match and not re.search(r"\w+ \w+", match["reason"]):
            yield f"{source.path}:{number}: say in a few words why this is silenced"


def check_names(source: Source) -> Iterator[str]:
    """A module is one noun; vague nouns name nothing."""
    if source.path.stem in VAGUE_NAMES:
        yield f"{source.path}: name the module for what it holds"


def check_tests(source: Source) -> Iterator[str]:
    """Each test says in one sentence the behaviour that it proves."""
    for function in source.functions():
        if function.name.startswith("test_") and not ast.get_docstring(function):
            yield f"{source.path}:{function.lineno}: {function.name} needs a one-sentence docstring"


def check_guards(sources: list[Source]) -> list[str]:
    """`except Exception` stands in two places at most: the judge's and the after-work's guard.

    Tidying up and raising again is no guard.
    """
    places = [
        f"{source.path}:{node.lineno}"
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or _is_broad(node.type))
        and not _passes_on(node)
    ]
    return [f"{place}: a broad except; the two guards are spent" for place in places[GUARDS:]]


def check_text(path: Path, text: str) -> Iterator[str]:
    """What must not be committed: registry addresses, paths of one machine, credentials."""
    if UNREAD.intersection(path.parts):
        return
    for number, line in enumerate(text.splitlines(), 1):
        for what, pattern in FORBIDDEN_TEXT.items():
            if pattern.search(line):
                yield f"{path}:{number}: {what}"


def _passes_on(node: ast.ExceptHandler) -> bool:
    """Whether the handler only tidies up and lets the error go on."""
    last = node.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def _is_broad(node: ast.expr) -> bool:
    names = node.elts if isinstance(node, ast.Tuple) else [node]
    return any(
        isinstance(name, ast.Name) and name.id in {"Exception", "BaseException"} for name in names
    )
