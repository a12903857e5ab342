"""Tool names go in; the server each one seems to belong to comes out ("" for none)."""

import re
from collections import Counter
from collections.abc import Sequence

STRONG = ("__", "/", ".", ":")
"""Separators that hosts put between a server and its tool; two members make a group."""
TRAILING = "_mcp_"
"""LibreChat writes `<tool>_mcp_<server>`: the group is what follows."""
MIN_STRONG, MIN_WEAK = 2, 3
_WEAK = re.compile(r"[A-Za-z0-9]+(?=[_-])")
_VERBS = """
    add ask call cancel check clear close compute convert copy count create delete describe
    disable do download edit enable execute fetch find generate get is list load make merge move
    new open parse post push put query read remove rename reset resolve run save search select
    send set show start stop submit test update upload validate verify view write
"""
VERBS = frozenset(_VERBS.split())
"""A first word like these says what a tool does, not whose it is."""


def learn_groups(names: Sequence[str]) -> tuple[str, ...]:
    """Give each name its group: the longest prefix that enough other names share."""
    candidates = [_candidates(name) for name in names]
    members = Counter(prefix for prefixes in candidates for prefix, _ in prefixes)
    return tuple(_choose(prefixes, members) for prefixes in candidates)


def _choose(prefixes: list[tuple[str, int]], members: Counter[str]) -> str:
    return next((prefix for prefix, least in prefixes if members[prefix] >= least), "")


def _candidates(name: str) -> list[tuple[str, int]]:
    """List (prefix, members it needs), best first."""
    head, mark, server = name.rpartition(TRAILING)
    if mark and head and server and "__" not in name:
        return [(server, MIN_STRONG)]
    strong = sorted(set(_strong_prefixes(name)), key=len, reverse=True)
    if strong:
        return [(prefix, MIN_STRONG) for prefix in strong]
    weak = _WEAK.match(name)
    if weak is None or weak[0].lower() in VERBS or len(weak[0]) < 2:
        return []
    return [(weak[0], MIN_WEAK)]


def _strong_prefixes(name: str) -> list[str]:
    prefixes = []
    for separator in STRONG:
        start = name.find(separator, 1)
        while start > 0 and start + len(separator) < len(name):
            prefixes.append(name[:start])
            start = name.find(separator, start + len(separator))
    return [prefix for prefix in prefixes if prefix != "mcp"]


def local_name(name: str, group: str) -> str:
    """Cut the group and its separator off a name: what a listing shows below the group."""
    if not group:
        return name
    if name.startswith(group):
        return name[len(group) :].lstrip("_-./:") or name
    return name.removesuffix(TRAILING + group) or name
