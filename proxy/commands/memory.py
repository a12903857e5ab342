"""`usher memory …` comes in; somebody's memories are exported, imported, shown or forgotten."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

import orjson
import typer

from proxy.commands.output import print_json, print_table, print_text
from proxy.config import data_folder, load
from proxy.errors import ConfigError
from proxy.memory.bank import Bank
from proxy.memory.build import open_bank
from proxy.memory.change import Origin, Store
from proxy.memory.principal import Principal
from proxy.memory.value import Refused, check_key, check_value
from proxy.settings import Settings
from proxy.tools.tokens import count_tokens
from proxy.wire import JSON

app = typer.Typer(help="See, export, import and forget what users had remembered.")
T = TypeVar("T")

User = Annotated[str, typer.Option(help="The user's id.")]
Tenant = Annotated[str, typer.Option(help="The tenant of the user's key.")]
Scope = Annotated[str, typer.Option(help="app:NAME where memories are kept per application.")]
Config = Annotated[
    Path | None,
    typer.Option("--config", help="Configuration file. [default: USHER_CONFIG, ./usher.yaml]"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print data instead of text.")]


@app.command("show")
def show_memories(
    user: User,
    tenant: Tenant = "default",
    scope: Scope = "",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """What is remembered of a user."""
    whose = Principal(tenant, user, scope)
    found = _with_bank(config, lambda bank, _: bank.read(whose))
    rows = [memory.as_json() for memory in found.memories]
    if as_json:
        print_json({"memories": rows, "total_tokens": found.tokens})
    elif rows:
        names = ("key", "value", "token_count")
        print_table(["key", "value", "tokens"], [[row[name] for name in names] for row in rows])
    else:
        print_text("nothing is remembered of this user")


@app.command("export")
def export_memories(
    user: User,
    tenant: Tenant = "default",
    scope: Scope = "",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Write a user's memories as JSON lines; as one array with --json."""
    whose = Principal(tenant, user, scope)
    found = _with_bank(config, lambda bank, _: bank.read(whose))
    if as_json:
        print_json([memory.as_json() for memory in found.memories])
        return
    for memory in found.memories:
        sys.stdout.write(orjson.dumps(memory.as_json()).decode() + "\n")


@app.command("import")
def import_memories(  # noqa: PLR0913, PLR0917 - options are parameters
    file: Annotated[Path, typer.Argument(help="JSON lines of `usher memory export`.")],
    user: User,
    tenant: Tenant = "default",
    scope: Scope = "",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Store exported memories, all of them or none."""
    whose = Principal(tenant, user, scope)
    lines = [_read_line(line) for line in file.read_bytes().splitlines() if line.strip()]

    async def work(bank: Bank, settings: Settings) -> int:
        changes = [_make(key, value, settings) for key, value in lines]
        outcomes = await bank.change(whose, changes, Origin(op="import"), whole=True)
        for outcome in outcomes:
            if outcome.kind == "error":
                raise ConfigError(f"{outcome.key}: cannot be stored: over memory.token_limit")
        return sum(outcome.kind == "update" for outcome in outcomes)

    stored = _with_bank(config, work)
    if as_json:
        print_json({"stored": stored, "read": len(lines)})
    else:
        print_text(f"{stored} of {len(lines)} memories stored")


@app.command("forget")
def forget_memories(  # noqa: PLR0913, PLR0917 - options are parameters
    user: User,
    tenant: Tenant = "default",
    scope: Scope = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Delete everything that is remembered of a user, from the event log as well."""
    if not yes:
        typer.confirm(f"Delete all memories of {user}?", abort=True)
    whose = Principal(tenant, user, scope)
    gone = _with_bank(config, lambda bank, _: bank.forget(whose, Origin()))
    if as_json:
        print_json({"deleted": gone})
    else:
        print_text(f"{gone} memories deleted")


@app.command("merge")
def merge_memories(  # noqa: PLR0913, PLR0917 - options are parameters
    old: Annotated[str, typer.Option("--from", help="The id that the user had before.")],
    user: User,
    tenant: Tenant = "default",
    scope: Scope = "",
    old_tenant: Annotated[str | None, typer.Option(help="Its tenant, if another.")] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Give a user what was remembered under an earlier id; the newer of two values stays."""
    before, after = Principal(old_tenant or tenant, old, scope), Principal(tenant, user, scope)
    if before == after:
        raise ConfigError("--from and --user are the same")
    outcomes = _with_bank(config, lambda bank, _: bank.merge(before, after, Origin()))
    if any(outcome.kind == "error" for outcome in outcomes):
        raise ConfigError("together they are over memory.token_limit; nothing was changed")
    moved = sum(outcome.kind == "update" for outcome in outcomes)
    if as_json:
        print_json({"moved": moved})
    else:
        print_text(f"{moved} memories moved to {user}")


def _with_bank(config: Path | None, work: Callable[[Bank, Settings], Awaitable[T]]) -> T:
    settings = load(config, os.environ).settings

    async def run() -> T:
        bank = open_bank(settings, data_folder(os.environ))
        try:
            return await work(bank, settings)
        finally:
            await bank.aclose()

    return asyncio.run(run())


def _read_line(line: bytes) -> tuple[str, str]:
    try:
        row: JSON = orjson.loads(line)
    except orjson.JSONDecodeError:
        row = None
    if not isinstance(row, dict) or not isinstance(row.get("key"), str):
        raise ConfigError("a line of the file is no memory")
    return row["key"], str(row.get("value", ""))


def _make(key: str, value: str, settings: Settings) -> Store:
    try:
        slug = check_key(key, settings.memory.valid_keys)
        clean = check_value(value, settings.memory.char_limit)
    except Refused as refused:
        raise ConfigError(f"{key}: cannot be stored: {refused.reason}") from None
    return Store(slug, clean, count_tokens(clean))
