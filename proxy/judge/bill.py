"""The rows of judgments come in; what those of one request used goes out, for its reply."""

from collections import OrderedDict

from proxy.ledger.usage import Row

MOST = 1_024
"""Requests whose judgments are remembered; who never asks, as a served decision, makes room."""


class Bill:
    """Sums of the latest requests, by our own id of them; for one event loop."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._sums: OrderedDict[str, tuple[int | None, int | None]] = OrderedDict()

    def add(self, row: Row) -> None:
        """Count a judgment that was made for a turn; what it does not know adds nothing."""
        if row.context != "classification" or (
            row.prompt_tokens is None and row.cost_nano_usd is None
        ):
            return
        tokens, cost = self._sums.get(row.request_id, (None, None))
        self._sums[row.request_id] = (
            _plus(tokens, row.prompt_tokens),
            _plus(cost, row.cost_nano_usd),
        )
        if len(self._sums) > self._most:
            self._sums.popitem(last=False)

    def take(self, request_id: str) -> bytes | None:
        """The value of `x-usher-classification`; None when nothing was used, or nobody knows."""
        found = self._sums.pop(request_id, None)
        return None if found is None else describe_use(*found)


def describe_use(tokens: int | None, cost_nano_usd: int | None) -> bytes | None:
    """`tokens=212;cost=0.000010000`, in tokens and USD, without what is unknown."""
    spent = [] if tokens is None else [f"tokens={tokens}"]
    if cost_nano_usd is not None:
        spent.append(f"cost={cost_nano_usd / 1e9:.9f}")
    return ";".join(spent).encode() or None


def _plus(one: int | None, other: int | None) -> int | None:
    return one if other is None else (one or 0) + other
