"""Tasks that take several tools come in; how often the next one was foreseen goes out."""

from collections.abc import Iterator
from pathlib import Path

from proxy.errors import ConfigError
from proxy.evals.metrics import mean
from proxy.evals.rankers import Ranker
from proxy.evals.sets import Catalogue, Conversation, read_catalogue, read_conversations
from proxy.settings import Prediction
from proxy.tools.predict import Cue, order
from proxy.tools.rank import Index
from proxy.wire import JSONObject

DEPTHS = (1, 3, 5, 8)


def evaluate_next_tool(folder: Path, name: str, ranker: Ranker) -> JSONObject:
    """Measure whether the next tool is on the shortlist after each use of one."""
    catalogue = read_catalogue(folder)
    index = ranker(catalogue.documents).index
    places = [
        place
        for conversation in read_conversations(folder, catalogue.known)
        for place in _places(index, catalogue, conversation)
    ]
    if not places:
        raise ConfigError(f"{catalogue.name}: no task takes a second tool that could be foreseen")
    hits = {str(depth): mean(place <= depth for place in places) for depth in DEPTHS}
    return {"set": catalogue.name, "ranker": name, "steps": len(places), "hit": hits}


def _places(index: Index, catalogue: Catalogue, conversation: Conversation) -> Iterator[int]:
    """For every tool but the first: its place on the list of what might come next."""
    by_id = dict(zip(catalogue.ids, catalogue.documents, strict=True))
    names = tuple(by_id[tool].name for tool in conversation.tools)
    for at in range(1, len(names)):
        if names[at] in names[:at]:
            continue
        cue = Cue(conversation.task, "", "", names[:at], names[at - 1 : at])
        ranked = [name for name, _ in order(index, cue, Prediction(), {})]
        yield ranked.index(names[at]) + 1 if names[at] in ranked else len(catalogue.ids) + 1
