"""What a plan would take out, and what stands behind its first edit, come in; whether it pays out.

Per call the rest costs `read` a token less for each token taken out; once, everything behind the
first edit is written to the cache instead of read from it.
"""

from dataclasses import dataclass
from typing import Literal

from proxy.ledger.usage import Tokens
from proxy.triage.plan import Sent
from proxy.triage_settings import Triage

Verdict = Literal["pays", "cold", "forced", "too little", "declined by cost"]
SURE = 2
"""Misses after which there is no cache; one alone may be another machine of the provider's."""
CACHEABLE = 2_048
"""Tokens: providers cache no shorter prompts than half of this."""
BYTES_PER_TOKEN = 4.0
"""Of JSON messages in UTF-8; only shares and orders of magnitude are taken from it."""


@dataclass(frozen=True, slots=True)
class Change:
    """A prompt before and after, in tokens: what it was, what goes, what is read anew."""

    used: float
    removed: float
    behind: float


def count_misses(before: Sent | None, tokens: Tokens, *, warm: bool) -> int:
    """How often in a row nothing came from a cache; `warm` when it should hold the prefix."""
    if before is None:
        return 0
    if tokens.cached == 0 and warm and (tokens.prompt or 0) >= CACHEABLE:
        return before.misses + 1
    return 0 if tokens.cached else before.misses


def is_uncached(misses: int, settings: Triage) -> bool:
    """Whether reading anew costs nothing, by the operator's prices or as the provider shows."""
    return settings.cost.cache_read >= 1 or misses >= SURE


def weigh(change: Change, settings: Triage, *, uncached: bool = False) -> Verdict:
    """Whether to make the change now."""
    cost = settings.cost
    if change.removed <= 0:
        return "too little"
    if change.used > settings.force_water:
        return "forced"
    if change.removed < cost.min_reclaim * change.used:
        return "too little"
    if uncached:
        return "pays"
    once = (cost.cache_write - cost.cache_read) * change.behind
    saved = cost.cache_read * change.removed * cost.expected_calls
    return "pays" if once <= saved else "declined by cost"


def measure(before: bytes, after: bytes, used: float, *, whole: bool) -> Change:
    """The change between two `messages` arrays; `whole` when what is in front changes, too."""
    same = 0 if whole else common_prefix(before, after)
    behind = len(after) - same
    return Change(used, (len(before) - len(after)) / BYTES_PER_TOKEN, behind / BYTES_PER_TOKEN)


def common_prefix(one: bytes, other: bytes) -> int:
    """How many bytes are the same at the start; halves the question instead of walking."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def tokens_of(size: float) -> int:
    """Bytes of messages as tokens, roughly."""
    return round(size / BYTES_PER_TOKEN)
