"""A chat request comes in; what Usher will do with it goes out, and nothing was sent yet."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import msgspec

from proxy.advise import Adviser, Predictor, Query, Question, Scene, newest_moment
from proxy.keys.limiter import check_model
from proxy.learner import Learner
from proxy.plan.chain import chain_hashes
from proxy.plan.envelope import Envelope, open_envelope, read_messages
from proxy.plan.exchange import ChatRequest
from proxy.plan.plan import RequestPlan, pass_as_is
from proxy.plan.policy import Policy, read_policy
from proxy.plan.weave import Edit, Memento
from proxy.settings import Settings
from proxy.shelf import Shelf
from proxy.state.memory import Store
from proxy.tools.arrange import Arrangement, Wishes, arrange
from proxy.tools.bridge import bridge_message
from proxy.tools.choice import Choice, read_choice
from proxy.tools.delivery import Delivery, choose_delivery, speculates, takes_breakpoint
from proxy.tools.history import Asked, Called, History, read_history
from proxy.tools.speculate import write_search
from proxy.tools.toolbox import Toolbox
from proxy.triage.session import Session, weave_history
from proxy.upstream.brief import Brief
from proxy.upstream.headers import CREDENTIALS
from proxy.upstream.target import Target, Targets
from proxy.wire import JSONObject

ALL_KEPT = "all kept"
AT_ONCE = 8
"""Moments that are predicted on the event loop: together as long as reading a large body."""
_EMPTY = (b"[]", b"null")
_COUNTED = msgspec.json.Decoder(list[msgspec.Raw])


class Opened(msgspec.Struct, frozen=True):
    """The outside of a request; `envelope` is None when the body is no JSON object."""

    request: ChatRequest
    envelope: Envelope | None
    policy: Policy
    target: Target
    model: str
    user: str | None = None
    triage: Session | None = None
    query: Query | None = None

    @property
    def recalls(self) -> bool:
        """Whether a tool has to be offered for what triage took out of the history."""
        return self.triage is not None and self.triage.recallable


def reopen(opened: Opened, body: bytes) -> Opened:
    """The same request with another body, which is the client's with something of ours in it."""
    request = msgspec.structs.replace(opened.request, body=body)
    return msgspec.structs.replace(opened, request=request, envelope=open_envelope(body))


@dataclass(frozen=True, slots=True)
class _Study:
    """What a request with deferrable tools says; `predicts` when schemas may be sent ahead."""

    toolbox: Toolbox
    messages: Sequence[JSONObject]
    history: History
    choice: Choice
    delivery: Delivery
    predicts: bool


@dataclass(frozen=True, slots=True)
class Draft:
    """A request whose tools are deferred.

    `link` is the hash of the conversation so far, under which the hidden part of this turn will
    be kept for the next one. `earlier` is what stayed hidden of the turn before.
    """

    opened: Opened
    toolbox: Toolbox
    arrangement: Arrangement
    history: History
    choice: Choice
    brief: Brief
    link: str
    earlier: Sequence[JSONObject] = ()
    predicts: bool = False


class Drafter:
    """Plans requests: reads them, finds their toolbox and what is stored of their conversation."""

    def __init__(
        self,
        settings: Settings,
        shelf: Shelf,
        store: Store,
        adviser: Adviser | None = None,
        learner: Learner | None = None,
    ) -> None:
        self._settings = settings
        self._adviser = adviser
        self._learner = learner
        self._targets = Targets(settings)
        self._shelf = shelf
        self._store = store

    def open(self, request: ChatRequest) -> Opened:
        """Reads the outside of a request.

        Raises BadRequest for options of ours that are wrong, Forbidden for a model that the
        caller's key may not use.
        """
        envelope = open_envelope(request.body, self._shelf.known(request.caller.tenant))
        wishes = envelope.get("usher") if envelope is not None and "usher" in envelope else None
        grant = request.caller.grant
        policy = read_policy(
            self._settings,
            request.headers,
            wishes if isinstance(wishes, dict) else None,
            grant.policy.wishes() if grant is not None else None,
        )
        named = envelope.get("model") if envelope is not None else None
        model = named if isinstance(named, str) else request.azure_deployment or ""
        if grant is None:
            return Opened(
                request, envelope, policy, self._targets.choose(model), model, policy.user_id
            )
        check_model(grant, model, request.azure_deployment)
        bound = grant.upstream
        target = self._targets.choose(model) if bound is None else self._targets.named(bound)
        return Opened(request, envelope, policy, target, model, grant.speaks_for(policy.user_id))

    def query(self, opened: Opened) -> Query | None:
        """The question about tools, for a turn that has something else to ask; or nobody asks."""
        if self._adviser is None or not self._adviser.asks:
            return None
        return Query(lambda: self._question(opened), self._adviser.seconds)

    async def _question(self, opened: Opened) -> Question | None:
        study = await self._study(opened)
        if self._adviser is None or isinstance(study, RequestPlan) or not study.predicts:
            return None
        links = chain_hashes(study.messages, _owner(opened.request))
        return await self._adviser.prepare(
            Scene(opened.request, study.toolbox, study.history, study.messages, links)
        )

    async def _study(self, opened: Opened) -> _Study | RequestPlan:
        """What a request says, or the plan that says why it goes up as it came."""
        envelope, settings = opened.envelope, self._settings.deferral
        reason = self._reason_to_pass(opened)
        if reason is not None or envelope is None:
            return pass_as_is(reason)
        raw = envelope.raw("tools") or memoryview(b"")
        tenant = opened.request.caller.tenant
        toolbox = await self._shelf.take(tenant, raw, everything=opened.policy.defer == "all")
        messages = read_messages(envelope.raw("messages"))
        if toolbox is None or messages is None:
            return pass_as_is("malformed")
        history = read_history(messages)
        choice = read_choice(envelope.get("tool_choice"))
        reason = _reason_to_keep(toolbox, history, choice)
        if reason is not None and not (opened.recalls and reason == ALL_KEPT):
            return pass_as_is(reason, len(toolbox.catalogue.tools))
        delivery = choose_delivery(settings, opened.model, toolbox.catalogue)
        predicts = opened.policy.prediction == "on" and (
            delivery == "append" or speculates(settings, opened.model)
        )
        return _Study(toolbox, messages, history, choice, delivery, predicts)

    async def draft(self, opened: Opened) -> Draft | RequestPlan:
        """The draft of a request, or the plan that says why it goes up as it came."""
        envelope, settings = opened.envelope, self._settings.deferral
        study = await self._study(opened)
        if isinstance(study, RequestPlan) or envelope is None:
            return study if isinstance(study, RequestPlan) else pass_as_is(None)
        toolbox, messages, history = study.toolbox, study.messages, study.history
        links = chain_hashes(messages, _owner(opened.request))
        mementos = await self._recall(opened.request.caller.tenant, history, links)
        advice: Mapping[int, tuple[str, ...]] = {}
        if self._adviser is not None and study.predicts:
            scene = Scene(opened.request, toolbox, history, messages, links, opened.query)
            advice = await self._adviser.advise(scene)
        await _foresee(study)
        required = "required" in (study.choice.kind, study.choice.mode)
        arrangement = arrange(
            toolbox,
            history,
            Wishes(
                study.choice,
                self._keep(opened),
                study.delivery,
                settings.max_surfaced,
                settings.eager_chars,
                takes_breakpoint(settings, opened.model, opened.request.body),
            ),
            Predictor(
                toolbox, advice, study.predicts, newest_moment(history) if required else None
            ),
            {position: memento.discovered for position, memento in mementos.items()},
        )
        whole = len(arrangement.eager) == len(toolbox.split.eager) + len(toolbox.deferrable)
        if whole and not opened.recalls:
            return pass_as_is(ALL_KEPT, len(toolbox.catalogue.tools))
        edits = _edit_messages(messages, links, mementos, toolbox, arrangement)
        brief = Brief(
            envelope=envelope,
            toolbox=toolbox,
            arrangement=arrangement,
            choice=study.choice,
            settings=settings,
            messages=weave_history(opened.triage, envelope, edits, frozen=arrangement.frozen),
            ids=_used_ids(history, edits),
            stream=envelope.flag("stream"),
            sequential=bytes(envelope.raw("parallel_tool_calls") or b"") == b"false",
            ask_usage=opened.target.ask_usage,
            model=opened.target.model,
            hold_text=settings.narration == "hold" or _wants_json(envelope),
            recall=opened.triage.recall() if opened.triage and opened.recalls else None,
        )
        link = links[-1] if links else ""
        earlier = _hidden_before(history, mementos)
        made = (opened, toolbox, arrangement, history, study.choice, brief, link, earlier)
        return Draft(*made, predicts=study.predicts)

    async def remember(self, tenant: str, link: str, memento: Memento) -> None:
        """Keeps the hidden part of a turn for the conversation's next request."""
        if memento:
            await self._store.put(tenant, f"turn:{link}", memento.encode())

    def learn(self, draft: Draft, hidden: Sequence[JSONObject], called: Sequence[str]) -> None:
        """Hands on which calls followed the hidden messages of this turn and of the one before."""
        if self._learner is None:
            return
        tenant = draft.opened.request.caller.tenant
        self._learner.notice(tenant, draft.toolbox, hidden, called)
        newest = draft.history.newest
        fresh = [name for name in called if newest and name not in newest.names]
        self._learner.notice(tenant, draft.toolbox, draft.earlier, fresh)

    async def _recall(
        self, tenant: str, history: History, links: Sequence[str]
    ) -> Mapping[int, Memento]:
        positions = [event.position for event in history.events if isinstance(event, Called)]
        keys = {f"turn:{links[position]}": position for position in positions}
        found = await self._store.get_many(tenant, list(keys)) if keys else {}
        return {keys[key]: Memento.decode(value) for key, value in found.items()}

    def _reason_to_pass(self, opened: Opened) -> str | None:
        """Why a request is not for us, as far as its outside tells."""
        envelope = opened.envelope
        if envelope is None:
            return "not json"
        raw = envelope.raw("tools")
        if raw is None or raw in _EMPTY:
            return "no tools"
        if not opened.recalls:
            if opened.policy.deferral == "off":
                return "off"
            if self._is_small(opened, raw):
                return "small"
        if not envelope.spliceable:
            return "keys"
        return _reason_of_parameters(envelope)

    def _is_small(self, opened: Opened, raw: memoryview) -> bool:
        deferral = self._settings.deferral
        small = len(raw) < deferral.min_chars and _count(raw) < deferral.min_tools
        return small and opened.policy.defer != "all"

    def _keep(self, opened: Opened) -> tuple[str, ...]:
        """What stays whole: everything, where only the recall tool is why we step in."""
        raw = opened.envelope.raw("tools") if opened.envelope is not None else None
        off = opened.policy.deferral == "off"
        untouched = off or self._is_small(opened, raw or memoryview(b""))
        return ("*",) if untouched else opened.policy.keep


async def _foresee(study: _Study) -> None:
    """Predicts the moments of a long conversation that is new to this process in a thread."""
    cues = [event.cue for event in study.history.events if isinstance(event, Asked)]
    if study.predicts and len(cues) > AT_ONCE and not study.toolbox.foreknows(cues[-AT_ONCE - 1]):
        await asyncio.to_thread(study.toolbox.foresee, cues)


def _reason_of_parameters(envelope: Envelope) -> str | None:
    """Parameters that hidden rounds cannot serve, or that belong to the provider's own deferral.

    A stored completion is fetched by the id that the client saw, so it must be the only one.
    """
    for key in ("n", "best_of"):
        if key in envelope and bytes(envelope.raw(key) or b"") not in (b"1", b"null"):
            return key
    for key in ("logprobs", "store"):
        if envelope.flag(key):
            return key
    if envelope.get("functions") or envelope.get("function_call"):
        return "functions"
    return "native" if "deferred_tools" in envelope else None


def _reason_to_keep(toolbox: Toolbox, history: History, choice: Choice) -> str | None:
    """Why the whole catalogue is sent after all."""
    catalogue = toolbox.catalogue

    def known(name: str) -> bool:
        return name in catalogue.by_name or name == toolbox.search_name

    checks = (
        ("native", catalogue.native),
        (ALL_KEPT, not toolbox.deferrable),
        ("prefill", history.prefill),
        ("functions", history.legacy),
        ("tool_choice", choice.kind == "unknown"),
        ("tool_choice", not all(map(known, choice.names))),
    )
    return next((reason for reason, holds in checks if holds), None)


def _wants_json(envelope: Envelope) -> bool:
    """Whether text before a tool call would spoil a reply that must be JSON."""
    wanted = envelope.get("response_format")
    return isinstance(wanted, dict) and wanted.get("type") in ("json_object", "json_schema")


def _owner(request: ChatRequest) -> str:
    """A hash of the caller's own credential where no gateway key tells callers apart.

    Two who happen to have the same conversation with different provider keys share nothing.
    """
    if request.caller.grant is not None:
        return ""
    own = [value for name, value in request.headers if name.lower() in CREDENTIALS]
    return blake2b(b"\0".join(own), digest_size=16).hexdigest() if own else ""


def _count(raw: memoryview) -> int:
    try:
        return len(_COUNTED.decode(raw))
    except (msgspec.DecodeError, RecursionError):
        return 0


def _edit_messages(
    messages: Sequence[JSONObject],
    links: Sequence[str],
    mementos: Mapping[int, Memento],
    toolbox: Toolbox,
    arrangement: Arrangement,
) -> dict[int, Edit]:
    """What the client did not see of its conversation, put back where it happened.

    With a frozen array that includes the schemas of predicted and called tools, as results of
    searches, and calls in the form in which the model makes them.
    """
    if arrangement.search_raw is None and arrangement.pool:
        return {}
    edits = {at: memento.edit(messages[at]) for at, memento in mementos.items()}
    if not arrangement.frozen:
        return edits
    for position, names in arrangement.surfaced.arrivals.items():
        pair = write_search(toolbox.index, names, toolbox.search_name, links[position])
        edit = edits.get(position, Edit())
        if messages[position].get("role") == "assistant":
            edits[position] = replace(edit, before=(*edit.before, *pair))
        else:
            edits[position] = replace(edit, after=pair)
    for position, message in enumerate(messages):
        edit = edits.get(position, Edit())
        bridged = bridge_message(edit.message or message, toolbox.bridge_name, arrangement.pool)
        if bridged is not None:
            edits[position] = replace(edit, message=bridged)
    return edits


def _hidden_before(history: History, mementos: Mapping[int, Memento]) -> Sequence[JSONObject]:
    """What the client did not see of the newest turn, whose searches may end in a call now."""
    memento = mementos.get(history.newest.position) if history.newest else None
    if memento is None:
        return ()
    message = () if memento.message is None else (memento.message,)
    return (*memento.before, *message, *memento.after)


def _used_ids(history: History, edits: Mapping[int, Edit]) -> frozenset[str]:
    ids = {i for event in history.events if isinstance(event, Called) for i in event.ids}
    for edit in edits.values():
        ids.update(
            str(m["tool_call_id"]) for m in (*edit.before, *edit.after) if "tool_call_id" in m
        )
    return frozenset(ids)
