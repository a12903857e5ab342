"""Both runs of the demo come in; the comparison as JSON goes out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from proxy.demo.play import Played, Sent
from proxy.demo.scenario import Prompt
from proxy.upstream.standin.request import read_listing
from proxy.wire import JSON, JSONObject

_COUNTED = re.compile(r"^(\S+) \((\d+) tools\)$", re.MULTILINE)
"""A line of the listing for a group of which only the size fits."""


@dataclass(frozen=True, slots=True)
class Run:
    """One pass over all prompts, and the ledger's totals after it."""

    played: Sequence[Played]
    usage: list[JSONObject]


def compare(prompts: Sequence[Prompt], names: Sequence[str], off: Run, on: Run) -> JSONObject:
    """`names` are the tools of the catalogue."""
    pairs = list(zip(off.played, on.played, strict=True))
    return {
        "turns": [_turn(prompt, *pair) for prompt, pair in zip(prompts, pairs, strict=True)],
        "all_listed": all(_lists_all(sent, names) for p in on.played for sent in p.first[:1]),
        "answers_equal": all(_said(before) == _said(after) for before, after in pairs),
        "memory": None,
        "usage": {"off": off.usage, "on": on.usage},
    }


def succeeded(report: JSONObject) -> bool:
    """Whether the demo showed what it is meant to show."""
    larger = report.get("larger")
    if larger is not None and not succeeded(larger):
        return False
    costs = report.get("costs") or {}
    bills = [costs[name] for name in ("off", "append", "frozen") if name in costs]
    right = all(turn["right_tool"] for turn in report["turns"])
    right = right and all(bill["right_tools"] for bill in bills)
    return right and report["all_listed"] and report["answers_equal"]


def _turn(prompt: Prompt, off: Played, on: Played) -> JSONObject:
    """Sizes are those of the largest upstream call that the prompt took until its first reply."""
    before, after = _largest(off.first), _largest(on.first)
    expected = () if prompt.expected is None else (prompt.expected,)
    return {
        "prompt": prompt.text,
        "headers": dict(prompt.headers),
        "off": {"tools": before.tools, "tool_tokens": before.tool_tokens},
        "on": {
            "tools": after.tools,
            "tool_tokens": after.tool_tokens,
            "calls": [{"tools": s.tools, "tool_tokens": s.tool_tokens} for s in on.first + on.rest],
        },
        "cut": round(1 - after.tool_tokens / before.tool_tokens, 4),
        "rounds": len(on.first),
        "predicted": list(on.predicted),
        "discovered": list(on.discovered),
        "called": list(on.called),
        "right_tool": off.called == on.called == expected,
    }


def _largest(sent: Sequence[Sent]) -> Sent:
    return max(sent, key=lambda call: call.tool_tokens)


def _lists_all(sent: Sent, names: Sequence[str]) -> bool:
    """Whether each tool is there as a whole, by name, or counted in its group."""
    left = set(names) - {*sent.names, *read_listing(sent.listing)}
    for pattern, count in _COUNTED.findall(sent.listing):
        begin, star, end = pattern.partition("*")
        group = {n for n in left if not star or (n.startswith(begin) and n.endswith(end))}
        if len(group) <= int(count):
            left -= group
    return not left


def _said(played: Played) -> tuple[JSON, ...]:
    return played.called, played.arguments, played.answer
