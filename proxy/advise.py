"""A conversation comes in; the tools that a judge chose for its user messages go out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from proxy.judge.ask import Judge
from proxy.judge.fused import Asking, TurnJudge, pick_candidates
from proxy.judge.heard import Heard, listen
from proxy.judge.job import Purpose
from proxy.judge.select import Offer, select_tools
from proxy.judge_settings import ToolSelection
from proxy.plan.exchange import ChatRequest
from proxy.state.memory import Store
from proxy.tools.history import Asked, History
from proxy.tools.toolbox import Toolbox
from proxy.wire import JSONObject


@dataclass(frozen=True, slots=True)
class Scene:
    """A conversation as far as advice needs it; `links` are its chain hashes."""

    request: ChatRequest
    toolbox: Toolbox
    history: History
    messages: Sequence[JSONObject]
    links: Sequence[str]


class Adviser:
    """Has the newest user message judged once, and remembers what was chosen for older ones.

    Without a remote judge, or while it fails, there is no advice and the ranker predicts.
    """

    def __init__(
        self, judge: Judge, turn_judge: TurnJudge, settings: ToolSelection, store: Store
    ) -> None:
        self._judge = judge
        self._turn_judge = turn_judge
        self._settings = settings
        self._store = store

    async def advise(self, scene: Scene) -> Mapping[int, tuple[str, ...]]:
        """The chosen names by the position of the user message."""
        if not self._settings.enabled or not self._judge.remote:
            return {}
        tenant = scene.request.caller.tenant
        asked = [event for event in scene.history.events if isinstance(event, Asked)]
        keys = {f"judged:{scene.links[event.position]}": event.position for event in asked}
        found = await self._store.get_many(tenant, list(keys))
        advice = {keys[key]: tuple(orjson.loads(value)) for key, value in found.items()}
        heard = listen(scene.messages)
        if heard is None or heard.position in advice or not _is_newest(heard, scene):
            return advice
        names = await self._ask(scene, heard)
        if names is not None:
            advice[heard.position] = names
            key = f"judged:{scene.links[heard.position]}"
            await self._store.put(tenant, key, orjson.dumps(names))
        return advice

    async def _ask(self, scene: Scene, heard: Heard) -> tuple[str, ...] | None:
        """The judge's choice; None when it had none to offer in time."""
        index = scene.toolbox.index
        cue = next(
            event.cue
            for event in scene.history.events
            if isinstance(event, Asked) and event.position == heard.position
        )
        predicted = scene.toolbox.predict(cue)
        tools = pick_candidates(
            index, heard.latest, self._settings.max_options, named=predicted.mentioned
        )
        caller = scene.request.caller
        started = self._turn_judge.start(
            Asking(
                latest=heard.latest,
                conversation=heard.conversation,
                chain=scene.links[heard.position],
                purpose=Purpose(
                    "tool_selection",
                    request_id=scene.request.request_id,
                    tenant=caller.tenant,
                    key=caller.key,
                    user=caller.user,
                ),
                tools=tools,
            )
        )
        if started.tools is None:
            return None
        verdict = await started.tools.wait(self._settings.timeout_ms / 1000)
        if verdict.failure is not None:
            return None
        offer = Offer([tool.name for tool in tools], predicted.mentioned, predicted.names)
        return select_tools(verdict, offer, self._settings).names


def _is_newest(heard: Heard, scene: Scene) -> bool:
    """Whether that message is what the turn answers, and not an earlier one of a tool loop."""
    return heard.position == len(scene.messages) - 1
