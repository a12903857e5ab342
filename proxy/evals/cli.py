"""`usher eval …` comes in; figures of ranking and prediction go out, as text or JSON."""

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated

import orjson
import typer

from proxy.config import data_folder
from proxy.errors import ConfigError
from proxy.evals.ablation import evaluate_ablation
from proxy.evals.abstain import evaluate_abstention
from proxy.evals.baseline import find_regressions, measure_entry, read_baseline
from proxy.evals.curate import Candidate, curate
from proxy.evals.gate import Form, dump, evaluate_gate, open_gate
from proxy.evals.learning import evaluate_learning
from proxy.evals.next_tool import evaluate_next_tool
from proxy.evals.rankers import open_ranker
from proxy.evals.retrieval import evaluate_retrieval
from proxy.tools.semantic import has_semantic, restrain_threads
from proxy.wire import JSON, JSONObject

app = typer.Typer(help="Measure ranking and prediction on labelled sets.", no_args_is_help=True)

Set = Annotated[Path, typer.Option("--set", help="Folder with catalogue.jsonl and queries.jsonl.")]
RankerName = Annotated[str, typer.Option("--ranker", help="lexical or semantic.")]
Labelled = Annotated[Path, typer.Option("--file", help="JSON lines with latest and label.")]
GateForm = Annotated[Form, typer.Option("--form", help="auto, meaning or words.")]
Dump = Annotated[bool, typer.Option("--dump", help="Print id and score of each row instead.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Tools = Annotated[Path | None, typer.Option("--tools", help="Folder of the catalogue, if another.")]
Baseline = Annotated[Path, typer.Option("--file", help="The committed figures.")]
Captured = Annotated[Path, typer.Option("--from", help="The file that --capture wrote.")]
ToolsFile = Annotated[
    Path | None, typer.Option("--tools", help="JSON file with the `tools` of a request.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Take every query without asking.")]
Sets = Annotated[list[Path], typer.Option("--set", help="Folders of labelled sets.")]
Out = Annotated[Path, typer.Option("--out", help="The file to write.")]
Update = Annotated[bool, typer.Option("--update", help="Write today's figures into the file.")]


@app.command("retrieval")
def show_retrieval(folder: Set, ranker: RankerName = "lexical", as_json: AsJson = False) -> None:
    """Recall, MRR, nDCG and latency of a ranker on a set."""
    with open_ranker(ranker, vectors_file(os.environ)) as opened:
        show(evaluate_retrieval(folder, ranker, opened), as_json=as_json)


@app.command("next-tool")
def show_next_tool(folder: Set, ranker: RankerName = "lexical", as_json: AsJson = False) -> None:
    """How often the next tool of a task is on the shortlist once one was used."""
    with open_ranker(ranker, vectors_file(os.environ)) as opened:
        show(evaluate_next_tool(folder, ranker, opened), as_json=as_json)


@app.command("abstain")
def show_abstention(
    folder: Set, tools: Tools = None, ranker: RankerName = "semantic", as_json: AsJson = False
) -> None:
    """How often messages that need no tool get none, and the others some."""
    with open_ranker(ranker, vectors_file(os.environ)) as opened:
        show(evaluate_abstention(folder, tools or folder, ranker, opened), as_json=as_json)


@app.command("ablation")
def show_ablation(folder: Set, as_json: AsJson = False) -> None:
    """What leaving out each signal of the lexical ranker costs."""
    figures = evaluate_ablation(folder)
    if as_json:
        show(figures, as_json=True)
        return
    for row in figures["rows"]:
        typer.echo(f"{row['without']:>12}  R@1 {row['recall@1']:.4f}  R@5 {row['recall@5']:.4f}")


@app.command("learning")
def show_learning(
    folder: Set,
    ranker: RankerName = "lexical",
    mute: Annotated[int, typer.Option(min=0, help="Tools that lose their name and text.")] = 0,
    times: Annotated[int, typer.Option(min=1, help="Calls that each learned query ended in.")] = 1,
    as_json: AsJson = False,
) -> None:
    """What learning half of the queries from use does for the other half."""
    with open_ranker(ranker, vectors_file(os.environ)) as opened:
        show(evaluate_learning(folder, ranker, opened, mute, times), as_json=as_json)


@app.command("gate")
def show_gate(
    path: Labelled, form: GateForm = "auto", dumped: Dump = False, as_json: AsJson = False
) -> None:
    """How well the built-in memory gate tells requests to remember from everything else."""
    figures, judged = evaluate_gate(path, open_gate(form))
    if dumped:
        for line in dump(judged):
            typer.echo(line)
        return
    show(figures, as_json=as_json)


@app.command("regress")
def check_baseline(path: Baseline, update: Update = False, as_json: AsJson = False) -> None:
    """Measure the sets of a baseline file again; exit 1 when a figure fell."""
    baseline = read_baseline(path)
    found: list[str] = []
    for entry in baseline["sets"]:
        with open_ranker(entry["ranker"], vectors_file(os.environ)) as opened:
            figures = measure_entry(entry, path.parent, opened)
        found += find_regressions(entry, figures, baseline.get("tolerance", 0.01))
        entry["figures"] = figures
    if update:
        path.write_bytes(orjson.dumps(baseline, option=orjson.OPT_INDENT_2) + b"\n")
        return
    show({"regressions": found, "sets": baseline["sets"]}, as_json=as_json)
    if found:
        raise ConfigError("; ".join(found))


@app.command("curate")
def curate_captured(
    captured: Captured,
    folder: Set,
    tools: ToolsFile = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Turn searches that `usher serve --capture` wrote into a labelled set."""
    show(curate(captured, folder, tools, (lambda _: True) if yes else ask), as_json=as_json)


@app.command("adapt")
def learn_adapter(folders: Sets, out: Out, as_json: AsJson = False) -> None:
    """Learn from labelled sets how queries should be turned towards tools."""
    if not has_semantic():
        raise ConfigError("the extra `semantic` is not installed")
    restrain_threads()
    module = import_module("proxy.evals.adapt")
    module.learn_file(folders, vectors_file(os.environ), out)
    show({"written": str(out), "bytes": out.stat().st_size}, as_json=as_json)


def ask(candidate: Candidate) -> bool:
    """Ask a person. Raises ConfigError where there is none, once there is something to ask."""
    if not sys.stdin.isatty():
        raise ConfigError("there is no terminal to ask at; say --yes to take every query")
    return confirm(candidate)


def confirm(candidate: Candidate) -> bool:
    """Ask whether a captured query means these tools; the question stands on stderr."""
    others = ", ".join(candidate.others) or "nothing"
    meant = f"{' | '.join(candidate.tools)}  (also shown: {others})"
    lines = (_printable(line) for line in (candidate.query, f"  -> {meant}", "  Keep?"))
    return typer.confirm("\n".join(lines), default=True, err=True)


def _printable(text: str) -> str:
    """A model's words without what would move the cursor or colour the terminal."""
    return "".join(char if char.isprintable() else " " for char in text)


def vectors_file(environ: Mapping[str, str]) -> Path:
    """Where sentence vectors are kept between runs."""
    return data_folder(environ) / "vectors"


def show(figures: JSONObject, *, as_json: bool) -> None:
    """Print figures as JSON, or one per line."""
    if as_json:
        typer.echo(orjson.dumps(figures, option=orjson.OPT_INDENT_2).decode())
        return
    for key, value in figures.items():
        typer.echo(f"{key:>18}  {_flatten(value)}")


def _flatten(value: JSON) -> str:
    if isinstance(value, dict):
        return "  ".join(f"{key}={_flatten(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return "; ".join(map(_flatten, value)) or "none"
    return str(value)
