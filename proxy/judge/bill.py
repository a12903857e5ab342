"""The rows of judgments come in; what those of one request used goes out, for its reply."""

from collections import OrderedDict
from typing import NamedTuple

from proxy.ledger.usage import Row

MOST = 1_024
"""Requests whose judgments are remembered; who never asks, as a served decision, makes room."""


class Use(NamedTuple):
    """Prompt tokens and nano-USD; None is unknown."""

    tokens: int | None = None
    cost_nano_usd: int | None = None

    def plus(self, other: "Use") -> "Use":
        """Both together; what one does not know adds nothing."""
        return Use(*map(_plus, self, other))

    def describe(self) -> bytes | None:
        """`tokens=212;cost=0.000010000`, in USD; None when nothing was used, or nobody knows."""
        spent = [] if self.tokens is None else [f"tokens={self.tokens}"]
        if self.cost_nano_usd is not None:
            spent.append(f"cost={self.cost_nano_usd / 1e9:.9f}")
        return ";".join(spent).encode() or None


NOTHING = Use()


class Bill:
    """Sums of the latest requests, by tenant and our own id of them; for one event loop."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._sums: OrderedDict[tuple[str, str], Use] = OrderedDict()

    def add(self, row: Row) -> None:
        """Count what a judgment of a turn used; what was made for something else is not."""
        use = Use(row.prompt_tokens, row.cost_nano_usd)
        if row.context != "classification" or use == NOTHING:
            return
        key = row.tenant, row.request_id
        self._sums[key] = self._sums.get(key, NOTHING).plus(use)
        if len(self._sums) > self._most:
            self._sums.popitem(last=False)

    def take(self, tenant: str, request_id: str) -> Use:
        """What has come for a request since it last asked."""
        return self._sums.pop((tenant, request_id), NOTHING)


def _plus(one: int | None, other: int | None) -> int | None:
    return one if other is None else (one or 0) + other
