"""The demo's comparison comes in; tables for people go out."""

from rich.box import SIMPLE_HEAD
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
    larger = report.get("larger")
    more = [_sizes(larger, f"The same with {larger['tools']:,} tools")] if larger else []
    tables = (
        _sizes(report),
        _ways(report),
        *more,
        _bills(report),
        *_memory(report),
        _books(report),
    )
    parts: tuple[str | Table, ...] = (HEADLINE, "", *tables, verdicts)
    (console or Console(highlight=False, markup=False)).print(Group(*parts))


def _sizes(report: JSONObject, title: str = "What the upstream received") -> Table:
    table = _table(title, "prompt")
    for heading in ("tools off", "tokens off", "tools on", "tokens on", "cut"):
        table.add_column(heading, justify="right")
    for turn in report["turns"]:
        off, on = turn["off"], turn["on"]
        counts = (off["tools"], off["tool_tokens"], on["tools"], on["tool_tokens"])
        cells = (*(f"{count:,}" for count in counts), f"{turn['cut']:.1%}")
        table.add_row(_label(turn), *cells)
    return table


def _ways(report: JSONObject) -> Table:
    table = _table("How the model got its tool", "prompt")
    for heading in ("rounds", "predicted", "discovered"):
        table.add_column(heading, justify="right")
    table.add_column("called")
    table.add_column("it was")
    for turn in report["turns"]:
        counts = (turn["rounds"], len(turn["predicted"]), len(turn["discovered"]))
        called = ", ".join(turn["called"]) or "–"
        table.add_row(_label(turn), *(str(count) for count in counts), called, _way(turn))
    return table


def _label(turn: JSONObject) -> str:
    """The prompt, and the headers that were sent along with it."""
    headers = [f"({name}: {value})" for name, value in turn["headers"].items()]
    return " ".join([turn["prompt"], *headers])


def _way(turn: JSONObject) -> str:
    """How the called tools came into the request."""
    if not turn["called"]:
        return "–"
    found = any(name in turn["discovered"] for name in turn["called"])
    return "found by a search" if found else "there from the start"


def _bills(report: JSONObject) -> Table:
    costs = report["costs"]
    title = f"A conversation of {costs['turns']} turns, cached tokens at {costs['cached_price']}"
    table = _table(title, "delivery")
    for heading in ("calls", "prompt tokens", "of them cached", "cost", "of off"):
        table.add_column(heading, justify="right")
    for name in ("off", "append", "frozen"):
        bill = costs[name]
        keys = ("calls", "prompt_tokens", "cached_tokens", "cost")
        table.add_row(name, *(f"{bill[key]:,}" for key in keys), f"{bill['of_off']:.1%}")
    return table


def _memory(report: JSONObject) -> list[Table]:
    """How often the memory agent ran, and what it left behind."""
    memory = report.get("memory")
    if not memory:
        return []
    title = f"Memory: {memory['conversations']} conversations, {memory['turns']} user turns"
    table = _table(title, "gate")
    for heading in ("agent runs", "stored", "tokens"):
        table.add_column(heading, justify="right")
    table.add_column("keys")
    for name in ("off", "on"):
        run = memory[name]
        keys = ", ".join(row["key"] for row in run["stored"])
        counts = (run["runs"], len(run["stored"]), run["tokens"])
        table.add_row(name, *(f"{count:,}" for count in counts), keys)
    return [table]


def _books(report: JSONObject) -> Table:
    table = _table("The ledger", "run", "context")
    for heading in ("calls", "prompt tokens", "of them cached", "completion tokens"):
        table.add_column(heading, justify="right")
    for run, rows in report["usage"].items():
        for row in rows:
            keys = ("calls", "prompt_tokens", "cached_tokens", "completion_tokens")
            table.add_row(run, row["context"], *(_number(row.get(key)) for key in keys))
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _yes(value: bool) -> str:
    return "yes" if value else "NO"
