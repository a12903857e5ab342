"""`usher key …`: what a key may do comes in; the changed key file and, once, a secret go out."""

import difflib
import os
import re
from pathlib import Path
from typing import Annotated, get_args

import msgspec
import typer

from proxy.commands.output import print_json, print_table, print_text
from proxy.config import data_folder, load
from proxy.errors import ConfigError
from proxy.keys.issue import describe_key, new_key, revoke_key, rotate_key
from proxy.keys.key import NO_LIMITS, GatewayKey, KeyPolicy, Limits
from proxy.keys.keyfile import key_path, read_keys
from proxy.ledger.usage import NANO, nano_usd
from proxy.settings import Settings
from proxy.upstream.target import Targets
from proxy.wire import JSONObject

app = typer.Typer(help="Make, list, revoke and rotate gateway keys.", no_args_is_help=True)

Config = Annotated[
    Path | None,
    typer.Option("--config", help="Configuration file. [default: USHER_CONFIG, ./usher.yaml]"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print data instead of text.")]
Name = Annotated[str, typer.Argument(help="The key's name, as the ledger shows it.")]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_SPAN = re.compile(r"(\d{1,4})([mhd])")
_SECONDS = {"m": 60, "h": 3600, "d": 86400}
_COLUMNS = (
    "name", "id", "tenant", "state", "admin", "models", "upstream", "user", "policy", "limits",
)  # fmt: skip
_BUDGETS = {"budget_day": "day", "budget_month": "month"}
CHOICES = {
    field.name: [word for word in get_args(get_args(field.type)[0]) if word]
    for field in msgspec.structs.fields(KeyPolicy)
}
"""What can be fixed for a key, in the words of its policy."""


@app.command()
def new(  # noqa: PLR0913, PLR0917 - options are parameters
    name: Name,
    config: Config = None,
    tenant: Annotated[str, typer.Option(help="Whose data it sees.")] = "default",
    admin: Annotated[bool, typer.Option("--admin", help="May read the ledger.")] = False,
    model: Annotated[list[str] | None, typer.Option(help="A model it may use, or a glob.")] = None,
    upstream: Annotated[str | None, typer.Option(help="Provider for all its requests.")] = None,
    user: Annotated[str | None, typer.Option(help="The one user it speaks for.")] = None,
    trust_user: Annotated[
        bool, typer.Option("--trust-user", help="Believe user ids in requests.")
    ] = False,
    rpm: Annotated[int | None, typer.Option(min=1, help="Requests per minute.")] = None,
    tpm: Annotated[int | None, typer.Option(min=1, help="Tokens per minute.")] = None,
    concurrent: Annotated[int | None, typer.Option(min=1, help="Requests at once.")] = None,
    budget_day: Annotated[float | None, typer.Option(min=0, help="USD per UTC day.")] = None,
    budget_month: Annotated[float | None, typer.Option(min=0, help="USD per UTC month.")] = None,
    defer: Annotated[str | None, typer.Option(help="Fix it: auto, off, all.")] = None,
    predict: Annotated[str | None, typer.Option(help="Fix it: on, off.")] = None,
    memory: Annotated[str | None, typer.Option(help="Fix it: off, read, write, full.")] = None,
    triage: Annotated[str | None, typer.Option(help="Fix it: off, on, shadow.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a key; its secret is printed once and kept nowhere."""
    check_name(name)
    settings = load(config, os.environ).settings
    check_upstream(settings, upstream)
    limits = Limits(rpm, tpm, concurrent, nano_usd(budget_day), nano_usd(budget_month))
    policy = read_policy({"defer": defer, "predict": predict, "memory": memory, "triage": triage})

    def wanted(key: GatewayKey) -> GatewayKey:
        return msgspec.structs.replace(
            key,
            tenant=tenant,
            admin=admin,
            models=tuple(model or ()),
            upstream=upstream,
            user=user,
            trust_user=trust_user,
            policy=policy,
            limits=limits,
        )

    path = key_path(settings.keys.file, data_folder(os.environ))
    secret = new_key(path, wanted, name)
    show_secret(name, secret, as_json=as_json)
    warn_of_workers(settings, limits)


@app.command("list")
def list_keys(config: Config = None, as_json: AsJson = False) -> None:
    """Show all keys; secrets and hashes are never shown."""
    settings = load(config, os.environ).settings
    path = key_path(settings.keys.file, data_folder(os.environ))
    keys = [describe_key(key) for key in read_keys(path)]
    if as_json:
        print_json({"keys": keys})
    elif not keys and settings.keys.file is not None:
        print_text(f"no keys in {path}, which keys.file names: the gateway does not start")
    elif not keys:
        print_text("no keys: the gateway is open, and listens on loopback only")
    else:
        print_table(_COLUMNS, [list_cells(key) for key in keys])


@app.command()
def revoke(name: Name, config: Config = None, as_json: AsJson = False) -> None:
    """Let a key in no more; running answers are finished."""
    revoke_key(find_file(config), name)
    if as_json:
        print_json({"name": name, "state": "revoked"})
    else:
        print_text(f"revoked {name}")


@app.command()
def rotate(
    name: Name,
    config: Config = None,
    grace: Annotated[str, typer.Option(help="How long the old secret works: 30m, 24h, 7d.")] = "0m",
    as_json: AsJson = False,
) -> None:
    """Give a key a new secret; everything else about it stays."""
    match = _SPAN.fullmatch(grace)
    if match is None:
        raise ConfigError(f"--grace {grace}: use a span such as 30m, 24h or 7d")
    seconds = int(match[1]) * _SECONDS[match[2]]
    show_secret(name, rotate_key(find_file(config), name, seconds), as_json=as_json)


def find_file(config: Path | None) -> Path:
    """The key file of the configuration in force."""
    settings = load(config, os.environ).settings
    return key_path(settings.keys.file, data_folder(os.environ))


def warn_of_workers(settings: Settings, limits: Limits) -> None:
    """Say on stderr what keeps a key with limits from letting anybody in, now or perhaps.

    The number of workers may be given to `usher serve` alone, where this command cannot see it.
    """
    if limits == NO_LIMITS or settings.state.url is not None:
        return
    workers = settings.server.workers
    if workers > 1:
        told = (
            f"server.workers is {workers} and there is no state.url, so this key's limits cannot "
        )
        told += "hold: a running gateway refuses its requests, and the next start is refused"
    else:
        told = (
            "limits hold for one worker; with `usher serve --workers` above 1 and no state.url a "
        )
        told += "running gateway refuses this key's requests, and a start is refused"
    typer.echo(f"usher: warning: {told}", err=True)


def check_upstream(settings: Settings, name: str | None) -> None:
    """Raises ConfigError for an upstream that the configuration does not have."""
    known = Targets(settings).names
    if name is not None and name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
        raise ConfigError(f"--upstream {name}: no provider of that name is configured; {hint}")


def check_name(name: str) -> None:
    """Raises ConfigError for a name that would not fit into a log line or a header."""
    if not _NAME.fullmatch(name):
        raise ConfigError("NAME: use up to 64 letters, digits, dots, dashes, @ and underscores")


def read_policy(words: dict[str, str | None]) -> KeyPolicy:
    """Check the choices; raises ConfigError with what would be right."""
    given = {name: word for name, word in words.items() if word is not None}
    for name, word in given.items():
        try:
            msgspec.convert({name: word}, KeyPolicy)
        except msgspec.ValidationError:
            choices = ", ".join(CHOICES[name])
            raise ConfigError(f"--{name} {word}: must be one of {choices}") from None
    return msgspec.convert(given, KeyPolicy)


def show_secret(name: str, secret: str, *, as_json: bool) -> None:
    """Print a secret, the only time."""
    if as_json:
        print_json({"name": name, "secret": secret})
    else:
        print_text(f"{secret}\nThis is the only time the secret of {name} is shown.")


def list_cells(key: JSONObject) -> list[object]:
    """A key as a line of the list."""
    trusted = ["trust-user"] if key.get("trust_user") else []
    fixed = [f"{name}={word}" for name, word in key.get("policy", {}).items()]
    limits = [describe_limit(name, number) for name, number in key.get("limits", {}).items()]
    shown = key | {
        "models": ", ".join(key.get("models", ())),
        "policy": " ".join(trusted + fixed),
        "limits": " ".join(limits),
    }
    return [shown.get(column) or None for column in _COLUMNS]


def describe_limit(name: str, number: int) -> str:
    """A limit as a person would write it: budgets in dollars, all others as numbers."""
    span = _BUDGETS.get(name)
    return f"{name}={number}" if span is None else f"${number / NANO:.12g}/{span}"
