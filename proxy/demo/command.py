"""Nothing comes in; the demo, played with everything off and on, goes to stdout as a report."""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from proxy.demo.catalogue import load_large, load_tools, read_tools
from proxy.demo.costs import compare_costs
from proxy.demo.gateway import serve_gateway
from proxy.demo.play import Player
from proxy.demo.remembering import compare_memory
from proxy.demo.report import Run, compare, succeeded
from proxy.demo.scenario import LARGE_PROMPTS, PROMPTS, Prompt, fit_prompts
from proxy.demo.table import print_report
from proxy.ledger.store import UsageQuery
from proxy.settings import Deferral, Mode
from proxy.wire import JSONObject

_MODES: tuple[Mode, Mode] = ("off", "on")


def run(*, as_json: bool, catalogue: Path | None = None) -> int:
    """Show the demo; the exit code is 1 when it does not show what it should.

    Raises ConfigError for a `catalogue` that is no file of tools.
    """
    report = make_report(catalogue)
    if as_json:
        sys.stdout.write(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    else:
        print_report(report)
    return 0 if succeeded(report) else 1


def make_report(catalogue: Path | None = None) -> JSONObject:
    """Play all prompts twice and compare; the same with more tools, or those of `catalogue`.

    Then the work of memory, and the bills of one long conversation.
    """
    larger = compare_catalogue(catalogue)
    tools = load_tools()
    return {
        **_compare(tools, PROMPTS),
        "larger": larger,
        "memory": compare_memory(),
        "costs": compare_costs(tools),
    }


def compare_catalogue(path: Path | None) -> JSONObject:
    """The comparison over the larger catalogue, or over a file's with prompts that fit it."""
    tools = load_large() if path is None else read_tools(path)
    prompts = LARGE_PROMPTS if path is None else fit_prompts(tools)
    return {"tools": len(tools), **_compare(tools, prompts)}


def _compare(tools: list[JSONObject], prompts: Sequence[Prompt]) -> JSONObject:
    names = [tool["function"]["name"] for tool in tools]
    off, on = (_play(tools, prompts, Deferral(mode=mode)) for mode in _MODES)
    return compare(prompts, names, off, on)


def _play(tools: list[JSONObject], prompts: Sequence[Prompt], deferral: Deferral) -> Run:
    with TemporaryDirectory() as folder, serve_gateway(Path(folder), deferral) as live:
        played = Player(live, tools).play(prompts)
        query = UsageQuery(by=("context",))
        return Run(played, asyncio.run(live.gateway.ledger.usage(query)))
