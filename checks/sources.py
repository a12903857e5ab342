"""The project's folder comes in; its Python files, parsed, and its committed texts go out."""

import ast
import io
import subprocess
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SKIPPED = {"data", "node_modules"}


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file; `path` is relative to the project."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node

    def comments(self) -> Iterator[tuple[int, str]]:
        """Each comment with its line; a text that only looks like one is none."""
        if not self.tree.body:
            return
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def read_sources(root: Path, folder: str) -> list[Source]:
    """Every Python file below a folder of the project, in order of path."""
    found = []
    for file in sorted((root / folder).rglob("*.py")):
        path = file.relative_to(root)
        if not SKIPPED.intersection(path.parts) and file.is_file():
            text = file.read_text(encoding="utf-8")
            found.append(Source(path, text, _parse(text)))
    return found


def _parse(text: str) -> ast.Module:
    """The tree, or an empty one where the linter will report a syntax error."""
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.Module(body=[], type_ignores=[])


def read_texts(root: Path) -> Iterator[tuple[Path, str]]:
    """Every text file that git would commit; binary files are left out."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    for name in sorted(set(listing.stdout.decode().split("\0")) - {""}):
        try:
            yield Path(name), (root / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue
