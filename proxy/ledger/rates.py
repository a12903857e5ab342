"""A price per kind of token and how many there were in; whole nano-USD out, without floats."""

from dataclasses import dataclass

from proxy.ledger.usage import Tokens

FEMTO = 10**15
"""Prices are whole femto-USD per token: the cheapest of today's tables have no finer digit."""

_FEMTO_PER_NANO = 10**6


@dataclass(frozen=True, slots=True)
class Rates:
    """Femto-USD per token, and nano-USD per request."""

    input: int
    output: int
    cached: int
    cache_write: int
    reasoning: int
    request: int = 0

    def cost(self, tokens: Tokens) -> int | None:
        """What the tokens cost in nano-USD; None when a count is unknown that has a price."""
        if tokens.prompt is None and self.input:
            return None
        if tokens.completion is None and self.output:
            return None
        prompt, completion = tokens.prompt or 0, tokens.completion or 0
        cached = min(tokens.cached, prompt) if tokens.cached else 0
        written = min(tokens.cache_write, prompt - cached) if tokens.cache_write else 0
        reasoning = min(tokens.reasoning, completion) if tokens.reasoning else 0
        femto = (
            (prompt - cached - written) * self.input
            + cached * self.cached
            + written * self.cache_write
            + (completion - reasoning) * self.output
            + reasoning * self.reasoning
        )
        return (femto + _FEMTO_PER_NANO // 2) // _FEMTO_PER_NANO + self.request
