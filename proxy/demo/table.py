"""The demo's comparison comes in; tables for people go out."""

from rich.console import Console, Group
from rich.table import Table

from proxy.wire import JSONObject

HEADLINE = (
    "A chat application sends 235 real tools with every request, through Usher, to a stand-in"
    " model: first with everything off, then with the defaults."
)


def print_report(report: JSONObject, console: Console | None = None) -> None:
    """Print what the upstream received and how it got there."""
    verdicts = (
        f"every tool still listed: {_yes(report['all_listed'])}"
        f" · answers equal in both runs: {_yes(report['answers_equal'])}"
    )
    parts = (HEADLINE, "", _sizes(report), "", _ways(report), "", _books(report), "", verdicts)
    (console or Console(highlight=False)).print(Group(*parts))


def _sizes(report: JSONObject) -> Table:
    table = Table(title="What the upstream received", title_justify="left")
    table.add_column("prompt", overflow="fold")
    for heading in ("tools off", "tokens off", "tools on", "tokens on", "cut"):
        table.add_column(heading, justify="right")
    for turn in report["turns"]:
        off, on = turn["off"], turn["on"]
        counts = (off["tools"], off["tool_tokens"], on["tools"], on["tool_tokens"])
        cells = (*(f"{count:,}" for count in counts), f"{turn['cut']:.1%}")
        table.add_row(turn["prompt"], *cells)
    return table


def _ways(report: JSONObject) -> Table:
    table = Table(title="How the model got its tool", title_justify="left")
    table.add_column("prompt", overflow="fold")
    table.add_column("rounds", justify="right")
    for heading in ("predicted", "discovered", "called"):
        table.add_column(heading, overflow="fold")
    for turn in report["turns"]:
        lists = ("\n".join(turn[key]) or "–" for key in ("predicted", "discovered", "called"))
        table.add_row(turn["prompt"], str(turn["rounds"]), *lists)
    return table


def _books(report: JSONObject) -> Table:
    table = Table(title="The ledger", title_justify="left")
    table.add_column("run")
    table.add_column("context")
    for heading in ("calls", "prompt tokens", "of them cached", "completion tokens"):
        table.add_column(heading, justify="right")
    for run, rows in report["usage"].items():
        for row in rows:
            keys = ("calls", "prompt_tokens", "cached_tokens", "completion_tokens")
            table.add_row(run, row["context"], *(_number(row.get(key)) for key in keys))
    return table


def _number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _yes(value: bool) -> str:
    return "yes" if value else "NO"
