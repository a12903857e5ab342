"""`usher calibrate`: a file of labelled examples in, thresholds that keep a promise out."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import orjson
import typer

from proxy.config import load
from proxy.errors import ConfigError
from proxy.judge.build import Around, Judges
from proxy.judge.calibrate import Fit, Locked, Target, fit_threshold, write_lock
from proxy.judge.embedded import Model
from proxy.judge.examples import Example, Judged, judge_examples, read_examples
from proxy.judge.wording import load_wordings
from proxy.ledger.prices import Prices, find_standins
from proxy.observe.log import configure
from proxy.settings import Settings
from proxy.upstream.aiohttp_transport import AiohttpTransport
from proxy.upstream.standin import StandinTransport

SECONDS = 30.0

app = typer.Typer(add_completion=False)


@dataclass(frozen=True, slots=True)
class Order:
    """What the person at the terminal asked for."""

    file: Path
    target: Target
    question: str | None = None
    out: Path | None = None
    models: Mapping[str, Model] = field(default_factory=dict)


def run(path: Path | None, environ: Mapping[str, str], order: Order, *, as_json: bool) -> int:
    """Calibrate, print the report, and write the lock file when one is asked for.

    1 when no threshold keeps the promise: nothing is written then, and an older file stays.
    """
    settings = load(path, environ).settings
    own = settings.classification
    wordings = load_wordings(Path(own.questions) if own.questions else None)
    try:
        lines = order.file.read_bytes().splitlines()
    except OSError as error:
        raise ConfigError(f"{order.file}: {error.strerror}") from None
    examples = read_examples(lines, wordings, order.question)
    judged = asyncio.run(_judge(settings, environ, order, examples))
    fits = {name: fit_threshold(one.examples, order.target) for name, one in judged.items()}
    locked = _lock(judged, fits)
    if order.out is not None and locked:
        order.out.write_bytes(write_lock(own.backend, locked))
    for line in [_data(judged, fits)] if as_json else _text(judged, fits, order.target):
        typer.echo(line)
    return 0 if locked else 1


@app.command()
def calibrate(  # noqa: PLR0913 - options are parameters
    file: Annotated[Path, typer.Argument(help="JSON lines with question, state and label.")],
    *,
    precision: Annotated[float | None, typer.Option(help="Precision to reach.")] = None,
    recall: Annotated[float | None, typer.Option(help="Recall to reach.")] = None,
    question: Annotated[str | None, typer.Option(help="For lines that name none.")] = None,
    out: Annotated[Path | None, typer.Option(help="Lock file to write.")] = None,
    config: Annotated[Path | None, typer.Option("--config", help="Configuration file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print data.")] = False,
) -> None:
    """Find the threshold of each question that reaches a precision or a recall."""
    import os  # noqa: PLC0415 - the environment is this command's alone

    order = Order(file, choose_target(precision, recall), question, out)
    raise typer.Exit(run(config, os.environ, order, as_json=as_json))


def choose_target(precision: float | None, recall: float | None) -> Target:
    """One of the two; recall 0.97 when neither is given. Raises ConfigError."""
    if precision is not None and recall is not None:
        raise ConfigError("give --precision or --recall, not both")
    target = (
        Target("precision", precision)
        if precision is not None
        else Target("recall", 0.97 if recall is None else recall)
    )
    if not 0 < target.value <= 1:
        raise ConfigError(f"--{target.kind} must be above 0 and at most 1")
    return target


async def _judge(
    settings: Settings, environ: Mapping[str, str], order: Order, examples: list[Example]
) -> Mapping[str, Judged]:
    openai, standin = AiohttpTransport(), StandinTransport()
    prices = Prices(settings.prices, standins=find_standins(settings))
    around = Around(
        ways={"openai": openai, "standin": standin},
        prices=prices,
        record=lambda _row: None,
        log=configure(settings.log),
        environ=environ,
        models=order.models,
    )
    try:
        return await judge_examples(Judges(settings, around).default, examples, SECONDS)
    finally:
        await openai.aclose()


def _lock(judged: Mapping[str, Judged], fits: Mapping[str, Fit]) -> Mapping[str, Locked]:
    return {
        name: Locked(fit.threshold, judged[name].question_hash, judged[name].model or "")
        for name, fit in fits.items()
        if fit.threshold is not None
    }


def _data(judged: Mapping[str, Judged], fits: Mapping[str, Fit]) -> str:
    body = {
        name: {
            **asdict(fit),
            "unanswered": judged[name].unanswered,
            "model": judged[name].model,
            "question_hash": judged[name].question_hash,
        }
        for name, fit in fits.items()
    }
    return orjson.dumps({"questions": body}).decode()


def _text(judged: Mapping[str, Judged], fits: Mapping[str, Fit], target: Target) -> list[str]:
    lines = []
    for name, fit in fits.items():
        lines.append(
            f"{name}: {fit.examples} examples, {fit.positives} true, "
            f"{judged[name].unanswered} unanswered, answered by {judged[name].model or 'a file'}"
        )
        if fit.threshold is None:
            lines.append(f"  no threshold reaches {target.kind} {target.value}")
        else:
            lines.append(
                f"  threshold {fit.threshold:.3f}: precision {fit.precision:.3f}, "
                f"recall {fit.recall:.3f}; calibration error {fit.calibration_error:.3f}"
            )
        lines += [
            f"  {one.low:.1f}–{one.high:.1f}: {one.count:5d} examples, "
            f"said {one.stated:.2f}, true {one.true:.2f}"
            for one in fit.bins
        ]
    return lines
