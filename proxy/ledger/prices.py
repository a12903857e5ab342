"""Tokens of a model in, nano-USD and the source of the price out; unknown is None, never 0."""

from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase
from typing import Protocol

import msgspec

from proxy.ledger.pricetable import Asked, Listed, PriceTable, load_table
from proxy.ledger.rates import FEMTO, Rates
from proxy.ledger.usage import NANO, Row, Tokens
from proxy.settings import Price, Settings

_MILLION = 10**6
_REMEMBERED = 4_096
STANDIN = "standin"
"""The embedded model's name as the default upstream, and the source of its price, which is none."""


class Bought(Protocol):
    """What to price: the tokens of a model under any of its names, the best name first."""

    @property
    def provider(self) -> str:
        """Name of the provider, as configured."""

    @property
    def models(self) -> Sequence[str]:
        """The model that answered, the model that was asked."""

    @property
    def tokens(self) -> Tokens:
        """How many of each kind."""

    @property
    def decisions(self) -> bool:
        """Whether it was asked on a decision route."""


class Prices:
    """Operator's prices, then the provider's own figure, then the table.

    `standins` are providers that are the embedded model, which costs nothing, whatever real model
    a client asks it for.
    """

    def __init__(
        self,
        operator: Sequence[Price] = (),
        load: Callable[[], PriceTable] = load_table,
        standins: Collection[str] = (STANDIN,),
    ) -> None:
        self._load = load
        self._table: PriceTable | None = None
        self._rows: dict[tuple[str, tuple[str, ...]], tuple[Listed, ...]] = {}
        self.adopt(operator, standins)

    def adopt(self, operator: Sequence[Price], standins: Collection[str] = (STANDIN,)) -> None:
        """Take other prices of the operator's from now on."""
        self._standins = frozenset(standins)
        self._operator = [(price.model, operator_rates(price)) for price in operator]
        self._operator_found: dict[str, Rates | None] = {}

    @property
    def loaded(self) -> bool:
        """Whether the table has been read; until then only the operator's prices are known."""
        return self._table is not None

    def load(self) -> None:
        """Read the table: 4 ms of one core, so not on the event loop."""
        if self._table is None:
            self._table = self._load()

    def cost(self, bought: Bought) -> tuple[int, str] | None:
        """Nano-USD and `operator`, `standin` or `table`; None when there is no price for it."""
        for model in bought.models:
            rates = self._operators(model)
            cost = None if rates is None else rates.cost(bought.tokens)
            if cost is not None:
                return cost, "operator"
        if bought.provider in self._standins:
            return 0, STANDIN
        asked = Asked(bought.tokens.prompt or 0, None, bought.decisions)
        return self._listed(bought.provider, tuple(bought.models), bought.tokens, asked)

    def price(self, row: Row) -> Row:
        """The row with its cost; a row that names the source of its cost stays as it is.

        A cost without a source is the provider's own figure. Estimated tokens have no price.
        While the table is not read, a row that needs it keeps no source, for another try.
        """
        if row.cost_source is not None:
            return row
        tokens = Tokens(
            row.prompt_tokens,
            row.cached_tokens,
            row.cache_write_tokens,
            row.completion_tokens,
            row.reasoning_tokens,
        )
        rates = self._operators(row.model)
        cost = None if rates is None or row.estimated else rates.cost(tokens)
        if cost is not None:
            return msgspec.structs.replace(row, cost_nano_usd=cost, cost_source="operator")
        if row.cost_nano_usd is not None:
            return msgspec.structs.replace(row, cost_source="provider")
        if row.provider in self._standins:
            return msgspec.structs.replace(row, cost_nano_usd=0, cost_source=STANDIN)
        if row.estimated:
            return msgspec.structs.replace(row, cost_source="unknown")
        if self._table is None:
            return row
        asked = Asked(row.prompt_tokens or 0, row.service_tier)
        models = (row.model,) if row.answered_model is None else (row.answered_model, row.model)
        found = self._listed(row.provider, models, tokens, asked)
        cost, source = found or (None, "unknown")
        return msgspec.structs.replace(row, cost_nano_usd=cost, cost_source=source)

    def window(self, provider: str, model: str) -> int | None:
        """How long a prompt a model takes, in tokens; None while or where that is unknown."""
        if self._table is None or not model:
            return None
        return self._table.window(f"{provider}/{model}") or self._table.window(model)

    def _operators(self, model: str) -> Rates | None:
        if not self._operator:
            return None
        if model not in self._operator_found:
            if len(self._operator_found) >= _REMEMBERED:
                self._operator_found.clear()
            matching = (rates for glob, rates in self._operator if fnmatchcase(model, glob))
            self._operator_found[model] = next(matching, None)
        return self._operator_found[model]

    def _listed(
        self, provider: str, models: tuple[str, ...], tokens: Tokens, asked: Asked
    ) -> tuple[int, str] | None:
        """Looks under `provider/model` first: the same name may cost something else elsewhere."""
        if self._table is None:
            return None
        key = (provider, models)
        rows = self._rows.get(key)
        if rows is None:
            if len(self._rows) >= _REMEMBERED:
                self._rows.clear()
            names = (name for model in models for name in (f"{provider}/{model}", model))
            rows = self._rows[key] = self._table.find(names)
        for row in rows:
            rates = row.rates(asked)
            cost = None if rates is None else rates.cost(tokens)
            if cost is not None:
                return cost, "table"
        return None


def find_standins(settings: Settings) -> Collection[str]:
    """The names of the providers that are the embedded model."""
    named = {provider.name for provider in settings.providers if provider.kind == "standin"}
    return named | {STANDIN} if settings.upstream.base_url is None else named


def operator_rates(price: Price) -> Rates:
    """An operator's price, in USD per million tokens, as rates."""

    def per_token(usd: float | None, otherwise: float) -> int:
        return round((otherwise if usd is None else usd) * FEMTO / _MILLION)

    return Rates(
        input=per_token(price.input, 0),
        output=per_token(price.output, 0),
        cached=per_token(price.cached, price.input),
        cache_write=per_token(price.cache_write, price.input),
        reasoning=per_token(price.reasoning, price.output),
        request=round(price.request * NANO),
    )
