"""A model's name and a catalogue come in; how found schemas reach that model goes out."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal

from proxy.settings import Deferral
from proxy.tools.catalog import Catalogue

Delivery = Literal["append", "frozen"]

CHARS_PER_TOKEN = 4.9
"""Of tool JSON: 553,289 characters are 113,941 tokens (o200k) in the 235 real tools."""

MARK = b'"cache_control"'
MAX_MARKS = 4


def choose_delivery(settings: Deferral, model: str, catalogue: Catalogue) -> Delivery:
    """The delivery of a conversation; it depends on nothing that changes within one.

    `auto` follows the families in the settings and, for other models, what is cheaper: with a
    frozen array a late find costs its schema once per remaining call at the cached price, with an
    appended one everything behind the tools is read anew at the full price.
    """
    if settings.delivery != "auto":
        return settings.delivery
    if _fits(model, settings.append_models) or _fits(model, settings.signed_models):
        return "append"
    if _fits(model, settings.frozen_models):
        return "frozen"
    per_tool = catalogue.chars / CHARS_PER_TOKEN / len(catalogue.tools)
    carried = per_tool * settings.search_limit * settings.expected_calls * settings.cache_price
    reread = settings.expected_history_tokens * (1 - settings.cache_price)
    return "frozen" if reread > carried else "append"


def speculates(settings: Deferral, model: str) -> bool:
    """Whether a search may be put into the history in the model's name.

    Models that sign their reasoning before a tool call would refuse an unsigned one.
    """
    return not _fits(model, settings.signed_models)


def takes_breakpoint(settings: Deferral, model: str, body: bytes) -> bool:
    """Whether the search tool is marked as the end of a prefix to cache.

    Providers refuse more than four marks, and the client's own come first.
    """
    return _fits(model, settings.cache_models) and body.count(MARK) < MAX_MARKS


def _fits(model: str, patterns: Sequence[str]) -> bool:
    name = model.lower()
    return any(fnmatchcase(name, pattern.lower()) for pattern in patterns)
