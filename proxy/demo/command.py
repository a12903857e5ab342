"""Nothing comes in; the demo, played with everything off and on, goes to stdout as a report."""

import asyncio
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from proxy.demo.catalogue import load_tools
from proxy.demo.costs import compare_costs
from proxy.demo.gateway import serve_gateway
from proxy.demo.play import Player
from proxy.demo.remembering import compare_memory
from proxy.demo.report import Run, compare, succeeded
from proxy.demo.scenario import PROMPTS
from proxy.demo.table import print_report
from proxy.ledger.store import UsageQuery
from proxy.settings import Deferral, Mode
from proxy.wire import JSONObject

_MODES: tuple[Mode, Mode] = ("off", "on")


def run(*, as_json: bool) -> int:
    """Show the demo; the exit code is 1 when it does not show what it should."""
    report = make_report()
    if as_json:
        sys.stdout.write(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    else:
        print_report(report)
    return 0 if succeeded(report) else 1


def make_report() -> JSONObject:
    """Play all prompts twice and compare; then the bills of one long conversation."""
    tools = load_tools()
    names = [tool["function"]["name"] for tool in tools]
    off, on = (_play(tools, Deferral(mode=mode)) for mode in _MODES)
    compared = compare(PROMPTS, names, off, on)
    return {**compared, "memory": compare_memory(), "costs": compare_costs(tools)}


def _play(tools: list[JSONObject], deferral: Deferral) -> Run:
    with TemporaryDirectory() as folder, serve_gateway(Path(folder), deferral) as live:
        played = Player(live, tools).play(PROMPTS)
        query = UsageQuery(by=("context",))
        return Run(played, asyncio.run(live.gateway.ledger.usage(query)))
