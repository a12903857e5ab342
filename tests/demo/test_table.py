"""The demo for people."""

import io

from rich.console import Console

from proxy.demo.table import print_report
from proxy.wire import JSONObject

TURN: JSONObject = {
    "prompt": "ping it",
    "headers": {"x-usher-predict": "off"},
    "off": {"tools": 235, "tool_tokens": 113_941},
    "on": {"tools": 6, "tool_tokens": 2_000},
    "cut": 0.98245,
    "rounds": 2,
    "predicted": ["net_trace"],
    "discovered": ["net_ping"],
    "called": ["net_ping"],
}
TOTALS: JSONObject = {"context": "main", "calls": 2, "prompt_tokens": 228_000}


BILL: JSONObject = {
    "calls": 16, "prompt_tokens": 1_800_000, "cached_tokens": 1_700_000, "cost": 270_000,
    "of_off": 1.0,
}  # fmt: skip
COSTS: JSONObject = {
    "turns": 12, "cached_price": 0.1, "off": BILL, "append": BILL,
    "frozen": {**BILL, "of_off": 0.114},
}  # fmt: skip


def _print(*turns: JSONObject, equal: bool = True) -> str:
    console = Console(file=io.StringIO(), width=120)
    usage = {"off": [TOTALS], "on": []}
    report: JSONObject = {"turns": turns, "all_listed": True, "answers_equal": equal}
    report |= {"usage": usage, "costs": COSTS}
    print_report(report, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_sizes_ways_and_books_are_shown() -> None:
    """Numbers with separators, the cut as a percentage, unknown sums as a dash."""
    text = _print(TURN)
    assert "ping it (x-usher-predict: off)" in text
    assert "113,941" in text
    assert "98.2%" in text
    assert "228,000" in text
    assert "–" in text
    assert "11.4%" in text


def test_it_says_how_the_tool_came() -> None:
    """By a search, by prediction, or not at all."""
    assert "found by a search" in _print(TURN)
    assert "there from the start" in _print({**TURN, "discovered": []})
    assert "found" not in _print({**TURN, "called": []})


def test_a_failure_is_loud() -> None:
    """In capitals."""
    assert "equal in both runs: NO" in _print(TURN, equal=False)


def test_a_larger_catalogue_gets_a_table_of_its_own() -> None:
    """With its number of tools."""
    console = Console(file=io.StringIO(), width=120)
    report: JSONObject = {"turns": [TURN], "all_listed": True, "answers_equal": True}
    report |= {"usage": {}, "costs": COSTS, "larger": {"tools": 1_879, "turns": [TURN]}}
    print_report(report, console)
    assert isinstance(console.file, io.StringIO)
    assert "The same with 1,879 tools" in console.file.getvalue()
