"""Settings and collaborators come in; triage, ready for requests, goes out."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proxy.errors import ConfigError
from proxy.judge.ask import Judge
from proxy.judge.native import json_headers
from proxy.judge.wording import load_wordings
from proxy.ledger.usage import Row
from proxy.settings import Settings
from proxy.state.memory import Store
from proxy.triage.conduct import Conduct, Parts, Windows, no_window
from proxy.triage.decide import QUESTION, BuiltInDecider, Decider, JudgedDecider
from proxy.triage.planner import Planner, Staff
from proxy.triage.store import Plans
from proxy.triage.tally import TriageTally
from proxy.triage.writer import ModelWriter, Place, Writer
from proxy.upstream.target import Targets, url_for
from proxy.upstream.transport import Transport


@dataclass(frozen=True, slots=True)
class History:
    """What triage works with; `ways` reaches upstreams by kind of target."""

    judge: Judge
    store: Store
    ways: Mapping[str, Transport]
    record: Callable[[Row], None]
    spawn: Callable[[Coroutine[Any, Any, None]], object]
    tally: TriageTally
    environ: Mapping[str, str] = field(default_factory=dict)
    windows: Windows = no_window


def build_triage(settings: Settings, near: History) -> Conduct:
    """Triage of a deployment. Raises ConfigError for a writer that cannot be reached."""
    own = settings.triage
    staff = Staff(_make_decider(settings, near.judge), _make_writer(settings, near))
    parts = Parts(
        Plans(near.store),
        Plans(near.store, "shadow"),
        Planner(staff),
        near.tally,
        near.spawn,
        windows=near.windows,
    )
    return Conduct(own, settings.limits, parts)


def _make_decider(settings: Settings, judge: Judge) -> Decider | None:
    """The judge where one is configured; what is built in only where that is asked for."""
    if judge.remote:
        folder = settings.classification.questions
        wordings = load_wordings(Path(folder) if folder else None)
        return JudgedDecider(judge, wordings[QUESTION], settings.triage)
    return BuiltInDecider() if settings.triage.embedded else None


def _make_writer(settings: Settings, near: History) -> Writer | None:
    own = settings.triage.writer
    if own.model is None:
        return None
    key = own.api_key.get_secret_value() if own.api_key else None
    if key is None and own.api_key_env:
        key = near.environ.get(own.api_key_env)
    if own.base_url is not None:
        url = own.base_url.rstrip("/") + "/chat/completions"
        place = Place("writer", own.model, url, json_headers(key))
        return ModelWriter(near.ways["openai"], place, own, near.record)
    target = Targets(settings).choose(own.model)
    if target.kind not in near.ways:
        raise ConfigError(f"triage.writer: models of provider {target.provider} cannot write")
    model = own.model
    url = url_for(target, "/v1/chat/completions", deployment=model if target.azure else None)
    headers = json_headers(key or target.api_key)
    if target.azure and (key or target.api_key):
        headers.append((b"api-key", (key or target.api_key or "").encode()))
    place = Place(target.provider, target.model or model, url, headers)
    return ModelWriter(near.ways[target.kind], place, own, near.record)
