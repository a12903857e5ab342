"""litellm's bundled price table as data: a model and how it was asked in, rates out.

The file is found without importing litellm. Names of its fields: `input_cost_per_token`, then
`_above_200k_tokens` for long prompts, then `_flex`, `_priority` or `_batches` for the tier, or
`_decisions` for the decision routes of a model that also chats.
"""

import bisect
import importlib.util
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from proxy.ledger.rates import FEMTO, Rates
from proxy.wire import JSON, JSONObject

FILE = "model_prices_and_context_window_backup.json"

_TIERS = {
    "flex": "_flex",
    "balanced": "_balanced",
    "priority": "_priority",
    "fast": "_priority",
    "ultrafast": "_ultrafast",
    "batch": "_batches",
}
_ABOVE = re.compile(r"input_cost_per_token(_above_(\d+)(k?)_tokens)")
_INCLUSIVE = {"xai"}  # bills the higher price at the threshold itself
_HALF_PRICED_CACHE = {"fireworks_ai"}  # where a row gives no price for cached tokens
_BY_CLOCK = "off_peak_pricing"


class Asked(msgspec.Struct, frozen=True, gc=False):
    """What decides on the rates besides the model."""

    prompt_tokens: int = 0
    tier: str | None = None
    decisions: bool = False


class PriceTable:
    """Rows stay raw JSON until somebody asks for them: 4 ms and 5 MB for 4,900 models."""

    def __init__(self, rows: Mapping[str, msgspec.Raw]) -> None:
        self._rows = rows
        self._listed: dict[str, Listed] = {}

    def rates(self, model: str, asked: Asked) -> Rates | None:
        """The rates of a model under its exact name; None when it has none per token."""
        listed = self._list(model)
        return None if listed is None else listed.rates(asked)

    def window(self, model: str) -> int | None:
        """The longest prompt of a model under its exact name, in tokens; None when unknown."""
        listed = self._list(model)
        return None if listed is None else listed.window

    def find(self, names: Iterable[str]) -> "tuple[Listed, ...]":
        """The rows of those names that have one, in the same order."""
        return tuple(row for name in names if (row := self._list(name)) is not None)

    def _list(self, model: str) -> "Listed | None":
        listed = self._listed.get(model)
        if listed is None:
            raw = self._rows.get(model)
            if raw is None:
                return None
            listed = self._listed[model] = Listed(self._resolve(raw))
        return listed

    def _resolve(self, raw: msgspec.Raw) -> JSON:
        """The row, or the one that it only is another name of."""
        row = msgspec.json.decode(raw)
        other = self._rows.get(str(row.get("alias_of"))) if isinstance(row, dict) else None
        return row if other is None else msgspec.json.decode(other)


class Listed:
    """One row of the table; its rates are read once per tier and size of prompt."""

    def __init__(self, row: JSON) -> None:
        self._row: JSONObject = row if isinstance(row, dict) else {}
        self._steps = _prompt_steps(self._row)
        self._read: dict[tuple[str, bool, int], Rates | None] = {}
        window = self._row.get("max_input_tokens")
        self.window = window if isinstance(window, int) and window > 0 else None

    def rates(self, asked: Asked) -> Rates | None:
        """The rates for a call, or None."""
        step = bisect.bisect_left(self._steps, asked.prompt_tokens) if self._steps else 0
        key = (_TIERS.get(asked.tier, "") if asked.tier else "", asked.decisions, step)
        try:
            return self._read[key]
        except KeyError:
            found = self._read[key] = read_rates(self._row, asked)
            return found


def load_table() -> PriceTable:
    """Read the table that came with litellm; an empty one when it is not installed or broken."""
    spec = importlib.util.find_spec("litellm")
    folders = spec.submodule_search_locations if spec is not None else None
    if not folders:
        return PriceTable({})
    try:
        content = Path(folders[0], FILE).read_bytes()
        return PriceTable(msgspec.json.decode(content, type=dict[str, msgspec.Raw]))
    except (OSError, msgspec.DecodeError):
        return PriceTable({})


def read_rates(row: JSONObject, asked: Asked) -> Rates | None:
    """The rates of one row.

    A price by time of day is unknown. A missing cache price is the input price, a missing
    reasoning price the output price, and a missing output price is free only where there is no
    output (embeddings, moderation).
    """
    if _BY_CLOCK in row:
        return None
    if asked.decisions:
        row = row | {k.removesuffix("_decisions"): v for k, v in row.items() if "_decisions" in k}
    row, suffixes = _choose(row, asked)
    prompt = _pick(row, "input_cost_per_token", suffixes)
    output = _pick(row, "output_cost_per_token", suffixes)
    query = row.get("input_cost_per_query") if asked.decisions else None
    if prompt is None and query is None:
        return None
    if output is None and row.get("mode") in {"chat", "completion", "responses"}:
        return None
    prompt, output = prompt or 0, output or 0
    return Rates(
        input=prompt,
        output=output,
        cached=_or(
            _pick(row, "cache_read_input_token_cost", suffixes),
            prompt // 2 if row.get("litellm_provider") in _HALF_PRICED_CACHE else prompt,
        ),
        cache_write=_or(_pick(row, "cache_creation_input_token_cost", suffixes), prompt),
        reasoning=_pick_reasoning(row, _TIERS.get(asked.tier or "", ""), output),
        request=round((query or 0) * 10**9),
    )


def _choose(row: JSONObject, asked: Asked) -> tuple[JSONObject, tuple[str, ...]]:
    """The row to read, and the endings of its fields from the most to the least special."""
    steps = _prompt_steps(row)
    step = bisect.bisect_left(steps, asked.prompt_tokens)
    ranges = row.get("tiered_pricing")
    if ranges:
        flat = {"output_cost_per_token": row.get("output_cost_per_token")}
        return flat | ranges[min(step, len(ranges) - 1)], ("",)
    tier = _TIERS.get(asked.tier or "", "")
    above = ""
    if step > 0:
        threshold = steps[step - 1] + (row.get("litellm_provider") in _INCLUSIVE)
        above = next(m[1] for m in _thresholds(row) if _tokens(m) == threshold)
    endings = [above + tier, above, tier, ""]
    return row, tuple(dict.fromkeys(endings))


def _prompt_steps(row: JSONObject) -> list[int]:
    """Largest prompts that still have the lower price, ascending."""
    ranges = row.get("tiered_pricing")
    if ranges:
        return [int(step["range"][1]) for step in ranges]
    lower = 1 if row.get("litellm_provider") in _INCLUSIVE else 0
    return sorted({_tokens(match) - lower for match in _thresholds(row)})


def _thresholds(row: JSONObject) -> Iterator[re.Match[str]]:
    return (match for field in row if (match := _ABOVE.match(field)))


def _tokens(match: re.Match[str]) -> int:
    return int(match[2]) * (1000 if match[3] else 1)


def _pick(row: JSONObject, field: str, suffixes: tuple[str, ...]) -> int | None:
    for suffix in suffixes:
        usd = row.get(field + suffix)
        if isinstance(usd, int | float):
            return round(usd * FEMTO)
    return None


def _pick_reasoning(row: JSONObject, tier: str, output: int) -> int:
    """A tier with an output price of its own bills reasoning at that, unless it says otherwise."""
    own = _pick(row, "output_cost_per_reasoning_token", (tier,))
    if own is None and not (tier and f"output_cost_per_token{tier}" in row):
        own = _pick(row, "output_cost_per_reasoning_token", ("",))
    return _or(own, output)


def _or(rate: int | None, otherwise: int) -> int:
    return otherwise if rate is None else rate
