"""Messages that do or do not need a tool come in; how often prediction knew goes out."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from proxy.evals.metrics import mean
from proxy.evals.rankers import Ranker
from proxy.evals.sets import read_catalogue, read_messages
from proxy.settings import Prediction
from proxy.tools.predict import Cue, predict
from proxy.wire import JSONObject


def evaluate_abstention(folder: Path, tools: Path, name: str, ranker: Ranker) -> JSONObject:
    """Predict for every message of `folder` over the catalogue of `tools`.

    `kept` is the share of messages in need of a tool that got a prediction, `silent` the share of
    the others that got none, `predicted` the mean number of tools sent along; what no message of
    the set says anything about is None.
    """
    catalogue = read_catalogue(tools)
    index = ranker(catalogue.documents).index
    counts: dict[bool, list[int]] = {True: [], False: []}
    languages = defaultdict[str, list[bool]](list)
    for message in read_messages(folder):
        cue = Cue(message.text, "", "", (), ())
        count = len(predict(index, cue, Prediction(), {}).names)
        counts[message.needs_tool].append(count)
        if message.language and not message.needs_tool:
            languages[message.language].append(count == 0)
    return {
        "set": folder.resolve().name,
        "catalogue": catalogue.name,
        "ranker": name,
        "queries": len(counts[True]) + len(counts[False]),
        "kept": _mean(count > 0 for count in counts[True]),
        "silent": _mean(count == 0 for count in counts[False]),
        "predicted": {"needing": _mean(counts[True]), "others": _mean(counts[False])},
        "silent_by_language": {lang: mean(silent) for lang, silent in languages.items()},
    }


def _mean(values: Iterable[float]) -> float | None:
    collected = list(values)
    return mean(collected) if collected else None
