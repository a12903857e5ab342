"""A run of the demo comes in; the README's table of measured numbers goes out.

`python -m checks.figures` writes it; a test fails when the demo says something else.
"""

import re
from pathlib import Path

from proxy.demo.command import make_report
from proxy.wire import JSONObject

FIGURES = re.compile(r"(?<=<!-- figures -->\n).*(?=<!-- /figures -->)", re.DOTALL)
INTRO = """\
Tools that the model receives from a client with 235 real ones, largest call of each turn
(`make demo`, offline, the same on every machine; tokens of o200k_base):
"""
HEAD = """\
| the user says | tools, off | on | tokens, off | on | less | tool called |
|---|---:|---:|---:|---:|---:|---|
"""


def render_figures(report: JSONObject) -> str:
    """The table of one report of the demo."""
    rows = "".join(_render_row(turn) for turn in report["turns"])
    return f"{INTRO}\n{HEAD}{rows}"


def put_figures(page: str, report: JSONObject) -> str:
    """The page with its table replaced."""
    return FIGURES.sub(lambda _: render_figures(report), page)


def _render_row(turn: JSONObject) -> str:
    off, on = turn["off"], turn["on"]
    called = ", ".join(f"`{name}`" for name in turn["called"]) or "none, rightly"
    if turn["headers"].get("x-usher-predict") == "off":
        called += " (prediction off: found by a search)"
    cells = (
        f"“{turn['prompt']}”",
        off["tools"],
        on["tools"],
        f"{off['tool_tokens']:,}",
        f"{on['tool_tokens']:,}",
        f"{turn['cut']:.1%}",
        called,
    )
    return f"| {' | '.join(map(str, cells))} |\n"


if __name__ == "__main__":
    readme = Path("README.md")
    readme.write_text(put_figures(readme.read_text(encoding="utf-8"), make_report()))
