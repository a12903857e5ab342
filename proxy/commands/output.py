"""What a command found comes in; JSON for programs or a table for people goes to stdout."""

import json
import re
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from proxy.wire import JSON

PASSWORD = re.compile(r"(?<=://)[^/@\s]*:[^/@\s]*(?=@)")


def print_json(data: JSON) -> None:
    """The data as indented JSON."""
    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False, default=str) + "\n")


def print_text(text: str) -> None:
    """One line or several, as they are."""
    sys.stdout.write(text + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table as wide as the terminal; columns whose cells are all numbers align right."""
    lines = [list(row) for row in rows]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        cells = [line[index] for line in lines]
        numeric = bool(cells) and all(isinstance(cell, int | float | None) for cell in cells)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for line in lines:
        table.add_row(*(_cell(cell) for cell in line))
    width = None if sys.stdout.isatty() else 200
    Console(width=width, markup=False, highlight=False).print(table)


def mask_password(text: str) -> str:
    """The text with user and password of a URL hidden."""
    return PASSWORD.sub("***:***", text)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else str(value)
