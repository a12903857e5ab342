"""A question about the ledger comes in; both sets of books, summed, go out."""

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from proxy.commands.output import print_json, print_table, print_text
from proxy.config import data_folder, load
from proxy.errors import ConfigError
from proxy.ledger.location import ledger_url, sqlite_path
from proxy.ledger.status import Options
from proxy.ledger.store import Dimension, UsageQuery
from proxy.ledger.writer import SqlLedger
from proxy.wire import JSONObject

SECONDS = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
COLUMNS = {
    "calls": "calls",
    "prompt_tokens": "prompt",
    "cached_tokens": "cached",
    "completion_tokens": "completion",
    "reasoning_tokens": "reasoning",
    "tokens_avoided_estimate": "avoided (est.)",
}


@dataclass(frozen=True, slots=True)
class Question:
    """What the person at the terminal asked: words, not yet checked."""

    by: str = "model,context"
    since: str | None = None
    tenant: str | None = None


def run(
    path: Path | None, environ: Mapping[str, str], question: Question, *, as_json: bool
) -> None:
    """Print what the ledger knows; an empty ledger is no error."""
    query = read_question(question, time.time())
    settings = load(path, environ).settings
    url = ledger_url(settings.ledger.url, data_folder(environ))
    options = Options(keep_days=settings.ledger.keep_days, close_seconds=1.0)
    usage, savings = asyncio.run(ask(url, options, query))
    if as_json:
        print_json({"by": query.by, "since": query.since, "usage": usage, "savings": savings})
    elif not usage:
        print_text("no calls recorded yet")
    else:
        columns = [*query.by, *COLUMNS.values(), "cost USD"]
        print_table(columns, [shape(row, query) for row in usage])
        print_text(describe_savings(savings))


async def ask(
    url: str, options: Options, query: UsageQuery
) -> tuple[list[JSONObject], list[JSONObject]]:
    """Totals of calls and of turns; a ledger that was never written is not created by asking.

    A file is only read, so that a read-only one can be asked too; one of an older Usher is brought
    up to date first.
    """
    file = sqlite_path(url)
    if file is not None and not file.exists():
        return [], []
    if file is not None:
        from proxy.ledger.readonly import open_books  # noqa: PLC0415 - SQLAlchemy: 0.3 s

        with open_books(file) as books:
            if books is not None:
                return await books.usage(query), await books.savings(query)
    ledger = SqlLedger(url, options)
    await ledger.start()
    try:
        return await ledger.usage(query), await ledger.savings(query)
    finally:
        await ledger.aclose()


def read_question(question: Question, now: float) -> UsageQuery:
    """Check the words; raises ConfigError with what would be right."""
    by = tuple(read_dimension(word.strip()) for word in question.by.split(","))
    since = None if question.since is None else now - read_span(question.since)
    return UsageQuery(by=by, tenant=question.tenant, since=since)


def read_dimension(word: str) -> Dimension:
    """One of the words that totals can be grouped by."""
    known: dict[str, Dimension] = {name: name for name in get_args(Dimension)}
    if word not in known:
        raise ConfigError(f"--by {word}: use {', '.join(known)}")
    return known[word]


def read_span(text: str) -> float:
    """Seconds in `12h`, `7d` or `2w`."""
    match = re.fullmatch(r"(\d{1,5})([mhdw])", text)
    if match is None:
        raise ConfigError(f"--since {text}: use a span such as 12h, 7d or 2w")
    return int(match[1]) * SECONDS[match[2]]


def describe_savings(savings: list[JSONObject]) -> str:
    """What deferral and prediction did, in one sentence each; unknown savings are never 0."""
    turns, avoided, uncounted, hits, unused = (
        sum(row.get(name) or 0 for row in savings)
        for name in (
            "turns",
            "tokens_avoided_estimate",
            "turns_without_estimate",
            "hits",
            "unused",
        )
    )
    kept_out = "tokens of tool schemas kept out of prompts"
    missing = f"not counted yet for {uncounted:,} of {turns:,} turns"
    if not uncounted:
        saved = f"about {avoided:,} {kept_out}"
    elif avoided:
        saved = f"about {avoided:,} {kept_out} ({missing})"
    else:
        saved = f"{kept_out}: {missing}"
    called = f"{hits:,} of {hits + unused:,} predicted tools were called"
    return f"{turns:,} turns, {saved}; {called}"


def shape(row: JSONObject, query: UsageQuery) -> list[object]:
    """One line of the table; an unknown sum stays unknown."""
    nano = row.get("cost_nano_usd")
    cost = None if nano is None else f"{nano / 1e9:.4f}"
    return [*(row.get(name) for name in query.by), *(row.get(name) for name in COLUMNS), cost]
