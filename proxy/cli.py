"""Command-line words come in; one command's work starts, and its exit code goes out.

Each command is imported when it is called, so that `usher --help` and `usher serve` load only what
they need.
"""

import asyncio
import gc
import os
import sys
import traceback
from importlib import import_module
from importlib.metadata import version as installed_version
from pathlib import Path
from types import TracebackType
from typing import Annotated

import typer
from typer._click.core import Command, Context  # typer keeps its own copy of click
from typer._click.exceptions import ClickException, UsageError
from typer._click.formatting import HelpFormatter
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from proxy.errors import UsherError

ELSEWHERE = {
    "key": ("proxy.commands.key", "Make, list, revoke and rotate gateway keys."),
    "memory": (
        "proxy.commands.memory",
        "See, export, import and forget what users had remembered.",
    ),
    "eval": ("proxy.evals.cli", "Measure ranking and prediction on labelled sets."),
    "calibrate": (
        "proxy.judge.cli",
        "Find thresholds that keep a promise, from labelled examples.",
    ),
}
"""Commands that other modules define as their `app`: the module, and the line in the help."""


class Commands(TyperGroup):
    """Usher's commands; one from elsewhere is imported when it is named, not to be listed."""

    def list_commands(self, ctx: Context) -> list[str]:
        return [*super().list_commands(ctx), *ELSEWHERE]

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        if cmd_name not in ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        other = import_module(ELSEWHERE[cmd_name][0]).app
        single = len(other.registered_commands) == 1
        command: Command = get_command(other) if single else get_group(other)
        command.name = cmd_name
        return command

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        listed = {name: TyperCommand(name, help=line) for name, (_, line) in ELSEWHERE.items()}
        TyperGroup(
            name=self.name, help=self.help, params=self.params, commands={**self.commands, **listed}
        ).format_help(ctx, formatter)


app = typer.Typer(
    name="usher",
    cls=Commands,
    help="An OpenAI-compatible gateway that takes tool schemas out of the prompt.",
    add_completion=False,
    pretty_exceptions_enable=False,
)

Config = Annotated[
    Path | None,
    typer.Option("--config", help="Configuration file. [default: USHER_CONFIG, ./usher.yaml]"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print data instead of text.")]


@app.command()
def serve(
    config: Config = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 picks a free one.")] = None,
    workers: Annotated[int | None, typer.Option(help="Number of processes.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Listen beyond loopback.")] = False,
    capture: Annotated[
        str | None, typer.Option(help="File that gets queries whose search ended in a call.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start the gateway."""
    gc.disable()  # nothing that is imported from here on is garbage; the server turns it on again
    from proxy.commands import serve as command

    flags = command.Flags(host, port, workers, insecure or None, capture)
    command.run(config, os.environ, flags, as_json=as_json)


@app.command()
def check(config: Config = None, as_json: AsJson = False) -> None:
    """Show the configuration in force and where each value comes from."""
    from proxy.commands import check as command

    raise typer.Exit(command.run(config, os.environ, as_json=as_json))


@app.command()
def demo(
    as_json: AsJson = False,
    catalogue: Annotated[
        Path | None, typer.Option(help="A file of tools, instead of the larger catalogue.")
    ] = None,
) -> None:
    """Show the main job in one picture, offline."""
    from proxy.demo import command

    raise typer.Exit(command.run(as_json=as_json, catalogue=catalogue))


@app.command()
def explain(
    request: Annotated[Path, typer.Argument(help="A chat request as JSON; - reads stdin.")],
    config: Config = None,
    header: Annotated[list[str] | None, typer.Option(help="`name: value`, repeatable.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what would be kept, deferred and predicted, and why; nothing is sent."""
    from proxy.commands import explain as command

    command.run(config, os.environ, request, header or [], as_json=as_json)


@app.command()
def usage(
    config: Config = None,
    by: Annotated[
        str, typer.Option(help="Group by: model, context, key, user, day, provider, tenant.")
    ] = "model,context",
    since: Annotated[str | None, typer.Option(help="Only the last 12h, 7d, 2w …")] = None,
    tenant: Annotated[str | None, typer.Option(help="Only one tenant.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what the models used, from the ledger."""
    from proxy.commands import usage as command

    question = command.Question(by=by, since=since, tenant=tenant)
    command.run(config, os.environ, question, as_json=as_json)


@app.command()
def replay(
    cassette: Annotated[Path, typer.Argument(help="Recorded traffic, a file or a folder.")],
    port: Annotated[int, typer.Option(help="Port of loopback; 0 picks a free one.")] = 8788,
    pace: Annotated[int, typer.Option(min=0, help="Milliseconds between events.")] = 0,
    repeat: Annotated[bool, typer.Option("--repeat", help="Answer again what was played.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 1 when answers are left or were missing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Serve recorded traffic as a local upstream."""
    from proxy.commands import replay as command

    wanted = command.Wanted(port, pace, repeat, strict)
    raise typer.Exit(command.run(cassette, wanted, as_json=as_json))


@app.command()
def doctor(config: Config = None, as_json: AsJson = False) -> None:
    """Look for what would keep Usher from working here."""
    from proxy.commands import doctor as command

    raise typer.Exit(command.run(config, os.environ, as_json=as_json))


@app.command()
def version(as_json: AsJson = False) -> None:
    """Show Usher's version."""
    from proxy.commands.output import print_json, print_text

    number = installed_version("usher-gateway")
    if as_json:
        print_json({"version": number})
    else:
        print_text(f"usher {number}")


def main() -> None:
    """The console script: every failure is one line on stderr and a non-zero exit."""
    sys.excepthook = print_failure
    sys.exit(run(sys.argv[1:]))


def run(words: list[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        code = get_command(app).main(words or ["--help"], "usher", standalone_mode=False)
    except UsageError as error:
        if not error.format_message():  # a group without a word: its help was shown
            return 0
        hint = f" (see `{error.ctx.command_path} --help`)" if error.ctx else ""
        return fail(error.format_message() + hint, 2)
    except ClickException as error:
        return fail(error.format_message(), error.exit_code)
    except UsherError as error:
        return fail(error.message, 1)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return fail(f"{place}{(error.strerror or str(error)).lower()}", 1)
    except (typer.Abort, KeyboardInterrupt, asyncio.CancelledError):
        return 130
    return code if isinstance(code, int) else 0


def fail(message: str, code: int) -> int:
    """Write each line of the message as one error."""
    for line in message.splitlines():
        sys.stderr.write(f"usher: {line}\n")
    return code


def print_failure(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """A bug of ours, in one line without its text, which may hold a secret."""
    if os.environ.get("USHER_TRACEBACK"):
        sys.__excepthook__(kind, error, trace)
        return
    frames = traceback.extract_tb(trace)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    fail(f"internal error: {kind.__name__}{place} (USHER_TRACEBACK=1 shows the way there)", 1)


if __name__ == "__main__":
    main()
