"""A request's history and its plan come in; the array that goes up, and what it is, go out."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

import orjson

from proxy.ledger.usage import Tokens
from proxy.plan.envelope import Envelope
from proxy.plan.identity import Caller
from proxy.plan.weave import Edit, weave_messages
from proxy.triage.cap import Cap
from proxy.triage.cost import tokens_of
from proxy.triage.plan import Act, Plan, Sent, count_acts
from proxy.triage.recall import Recall, choose_name, has_recall
from proxy.triage.render import Cut, Style, render_cuts
from proxy.triage.stitch import UNEDITED, Prefix, Seams, Stitched, finish_prefix, stitch
from proxy.triage.units import Conversation
from proxy.triage_settings import Triage
from proxy.upstream.transport import UpstreamResponse
from proxy.wire import JSONObject

THINKING = ("thinking", "reasoning_effort", "reasoning")
"""Parameters that ask a model for reasoning."""

Mode: TypeAlias = Literal["off", "observe", "on"]


@dataclass(frozen=True, slots=True)
class Scene:
    """A request as far as triage needs it; `mode` is what holds for it.

    `user` is the user that the request names, `ask_usage` whether its target may be asked for it,
    `model` what the upstream will be asked for.
    """

    envelope: Envelope
    caller: Caller
    request_id: str
    mode: Mode
    user: str | None = None
    ask_usage: bool = True
    provider: str = ""
    model: str = ""


class Desk(Protocol):
    """Who is told of a request on its way up and of its answer."""

    async def sent(self, session: "Session") -> None:
        """The history is woven and goes up now."""

    def hear(self, session: "Session", response: UpstreamResponse) -> UpstreamResponse:
        """A response, to be listened to."""

    def ended(self, session: "Session", tokens: Tokens) -> None:
        """The answer is over; its prompt came to that."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a history was put together: edits of deferral, and whether parts can be recalled."""

    edits: Mapping[int, Edit] = field(default_factory=dict)
    frozen: bool = False
    recall: bool = False


class Gate(Protocol):
    """Whoever judges whether the newest user message asks to have something remembered."""

    async def wanted(self) -> bool:
        """Once that is known; False where it never will be."""


class Prefixes:
    """Finished beginnings of arrays by plan: between plans nothing in them changes."""

    def __init__(self, most: int = 256, most_bytes: int = 64 * 1024 * 1024) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._kept: OrderedDict[tuple[str, str, str | None], Prefix] = OrderedDict()
        self._bytes = 0

    def get(self, session: "Session", name: str | None) -> Prefix | None:
        """The beginning that was made under the session's plan."""
        plan = session.plan
        if plan is None or session.compaction:
            return None
        return self._kept.get((session.scene.caller.tenant, plan.anchor, name))

    def put(self, session: "Session", name: str | None, prefix: Prefix | None) -> None:
        """Keeps one; the oldest leave when there are too many."""
        if session.plan is None or prefix is None:
            return
        place = (session.scene.caller.tenant, session.plan.anchor, name)
        old = self._kept.pop(place, None)
        self._kept[place] = prefix
        self._bytes += len(prefix.body) - (len(old.body) if old is not None else 0)
        while len(self._kept) > self._most or self._bytes > self._most_bytes:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= len(oldest.body)


@dataclass(slots=True)
class Session:
    """Triage of one request; `settings` are those for its model.

    `unthinking` when blocks of the running turn are left out: a provider then refuses to think on.
    `signed` once the answer has a signature in it, `uncached` once it is clear that the provider
    keeps no prefix. `gate` is memory's, where there is one.

    `acts` are in force for it, `states` say what signed blocks of its history were made from.
    """

    scene: Scene
    conversation: Conversation
    desk: Desk
    prefixes: Prefixes
    settings: Triage
    plan: Plan | None = None
    acts: Mapping[str, Act] = field(default_factory=dict)
    states: Mapping[bytes, str] = field(default_factory=dict)
    previous: Sent | None = None
    cap: Cap | None = None
    compaction: bool = False
    layout: Layout = field(default_factory=Layout)
    stitched: Stitched | None = None
    shown_id: str | None = None
    unthinking: bool = False
    signed: bool = False
    uncached: bool = False
    gate: Gate | None = None
    _sent: bool = False
    _names: tuple[str | None] | None = None

    @property
    def recall_name(self) -> str | None:
        """What the tool is called that returns things; None where there can be none."""
        if self._names is None:
            tools = self.scene.envelope.raw("tools") if self.settings.recall else None
            self._names = (choose_name(tools),)
        return self._names[0]

    @property
    def raw(self) -> memoryview:
        """The client's own array."""
        return self.scene.envelope.raw("messages") or memoryview(b"[]")

    @property
    def recallable(self) -> bool:
        """Whether anything is taken out that a tool could bring back."""
        edits = bool(self.acts) and self.scene.mode == "on"
        if self.compaction or not (edits or self.cap) or self.recall_name is None:
            return False
        return edits or self._caps_something()

    def _caps_something(self) -> bool:
        cuts = () if self.cap is None else self.cap.cuts(self.conversation, (), None)
        return next(iter(cuts), None) is not None

    def recall(self) -> Recall | None:
        """The tool for it."""
        if self.recall_name is None:
            return None
        return Recall(self.conversation, self.recall_name, self.settings.recall_chars)

    def weave(self, layout: Layout) -> bytes:
        """The array that goes up."""
        return bytes(self._weave(layout).body)

    def _weave(self, layout: Layout) -> Stitched:
        self.layout = layout
        if self.scene.mode == "observe" and self.cap is None:
            body = weave_messages(self.raw, layout.edits)
            self.stitched = Stitched(body, UNEDITED, UNEDITED, edited=bool(layout.edits))
        else:
            self.stitched = self.stitch({} if self.scene.mode == "observe" else self.acts)
        return self.stitched

    def stitch(self, acts: Mapping[str, Act]) -> Stitched:
        """The array as it is with these acts."""
        edits = self.layout.edits
        name = self.recall_name if self.layout.recall else None
        known = self.prefixes.get(self, name) if acts is self.acts else None
        if known is not None and known.fits(self.conversation, edits):
            cuts = self._capped({}, name)
            return stitch(self.conversation, self.raw, Seams(cuts, edits, self.states), known)
        held = [p for p, edit in edits.items() if edit.before or edit.after]
        style = Style(name, frozenset(held) if self.layout.frozen else ())
        cuts = {} if self.compaction else render_cuts(self.conversation, acts, style)
        seams = Seams(self._capped(cuts, name), edits, self.states)
        if acts is self.acts and cuts:
            self.prefixes.put(self, name, finish_prefix(self.conversation, seams))
        return stitch(self.conversation, self.raw, seams)

    def _capped(self, cuts: dict[int, Cut], name: str | None) -> dict[int, Cut]:
        if self.cap is not None and not self.compaction:
            cuts.update(self.cap.cuts(self.conversation, cuts, name))
        return cuts

    async def send(self) -> None:
        """Tells the desk once that the request goes up."""
        if self.stitched is not None and not self._sent:
            self._sent = True
            await self.desk.sent(self)

    def hear(self, response: UpstreamResponse) -> UpstreamResponse:
        """The response, with its signatures noted as it goes by."""
        return self.desk.hear(self, response)

    def end(self, tokens: Tokens, shown_id: str | None = None) -> None:
        """The answer is over; `shown_id` is the request id that its client saw."""
        self.shown_id = shown_id
        self.desk.ended(self, tokens)

    @property
    def altering(self) -> bool:
        """Whether the reply has to be readable for us: its usage, its signatures."""
        return self.scene.mode == "on" or self.cap is not None

    @property
    def moved(self) -> bool:
        """Whether the prefix is not the one that the request before this one had."""
        if self.previous is None or self.stitched is None:
            return False
        return self.previous.state != self.stitched.earlier

    @property
    def recalled(self) -> frozenset[int]:
        """Positions whose hidden messages hold a recalled part."""
        edits = self.layout.edits.items()
        return frozenset(position for position, edit in edits if has_recall(edit.before))

    @property
    def hides_usage(self) -> bool:
        """Whether a stream is asked for usage that its client did not want to see."""
        envelope = self.scene.envelope
        if self.scene.mode != "on" or not self.scene.ask_usage or not envelope.flag("stream"):
            return False
        options = envelope.get("stream_options")
        return not (isinstance(options, dict) and options.get("include_usage") is True)

    def changes(self) -> dict[str, bytes | None]:
        """What is edited in a body that is otherwise passed on."""
        stitched = self._weave(Layout())
        changes: dict[str, bytes | None] = {}
        if stitched.edited:
            changes["messages"] = bytes(stitched.body)
        if self.hides_usage:
            options = self.scene.envelope.get("stream_options")
            wanted = options if isinstance(options, dict) else {}
            changes["stream_options"] = orjson.dumps({**wanted, "include_usage": True})
        return changes

    def unthink(self) -> bytes | None:
        """The client's body without what asks for thinking; None where it stays as it is.

        A model that thinks wants the blocks of its running turn; where they cannot go up with it,
        it has to go on without, or the request is refused.
        """
        envelope = self.scene.envelope
        asked = [name for name in THINKING if name in envelope] if self.unthinking else []
        return envelope.edit(dict.fromkeys(asked)) if asked else None

    def saved(self) -> int:
        """Tokens of messages that were not sent, roughly."""
        sent = len(self.raw) if self.stitched is None else len(self.stitched.body)
        return max(0, tokens_of(len(self.raw) - sent))

    def describe(self) -> JSONObject:
        """What was done, for headers and the books."""
        counts = count_acts({} if self.compaction else self.acts)
        shadow = self.scene.mode == "observe"
        edited = counts["drop"] + counts["note"] + counts["clear"]
        return {
            "plan": self.plan.name if self.plan is not None else None,
            "kept": len(self.conversation.units) - edited,
            "noted": counts["note"],
            "dropped": counts["drop"],
            "cleared": counts["clear"],
            "saved": self.saved(),
            **({"shadow": True} if shadow else {}),
            **({"thinking": "off"} if self.unthinking else {}),
            **({"reason": "compaction"} if self.compaction else {}),
        }

    def header(self) -> str:
        """The value of `x-usher-triage`."""
        facts = self.describe()
        shown = [f"plan={facts.pop('plan') or 'none'}"]
        shown.extend(
            f"{k}={1 if v is True else v}" for k, v in facts.items() if v or k != "cleared"
        )
        return ";".join(shown)


def weave_history(
    session: Session | None, envelope: Envelope, edits: Mapping[int, Edit], *, frozen: bool
) -> bytes:
    """The messages that go up: hidden ones put in, and old ones as triage leaves them."""
    if session is None:
        return weave_messages(envelope.raw("messages") or b"[]", edits)
    return session.weave(Layout(edits, frozen, session.recallable))
