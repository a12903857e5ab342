"""Cuts, hidden messages of earlier turns and what is known of signatures come in; one array out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import orjson
import xxhash

from proxy.plan.weave import Edit
from proxy.triage.render import Cut
from proxy.triage.signed import is_signed, strip_signed
from proxy.triage.units import Conversation
from proxy.wire import JSONObject

UNEDITED = ""


@dataclass(frozen=True, slots=True)
class Stitched:
    """A whole `messages` array. `state` names the edits in it; equal states, equal prefixes.

    `earlier` is the state at the end of the request before this one.
    """

    body: bytes
    state: str
    earlier: str
    stripped: int = 0


@dataclass(slots=True)
class _State:
    """A running hash of the edits so far."""

    value: str = UNEDITED

    def advance(self, link: bytes, what: bytes) -> None:
        self.value = xxhash.xxh3_128_hexdigest(self.value.encode() + link + what)


@dataclass(frozen=True, slots=True)
class Seams:
    """What is put together: cuts by position, edits of deferral, states by signature.

    `states` says what a signed block was made from; it stays only if the same is in front of it
    now. What is not known is not taken for granted.
    """

    cuts: Mapping[int, Cut] = field(default_factory=dict)
    edits: Mapping[int, Edit] = field(default_factory=dict)
    states: Mapping[bytes, str] = field(default_factory=dict)


def stitch(conversation: Conversation, raw: bytes | memoryview, seams: Seams) -> Stitched:
    """The array that goes up; the client's own bytes when nothing is edited."""
    links, facts = conversation.links, conversation.facts
    state = _State()
    pieces: dict[int, Sequence[bytes | msgspec.Raw]] = {}
    earlier: str | None = None
    stripped = 0
    previous = conversation.heads[-2] if len(conversation.heads) > 1 else -1
    special = {*seams.cuts, *seams.edits}
    special.update(p for p, fact in enumerate(facts) if fact.seals)
    for position in sorted(special):
        if earlier is None and position > previous:
            earlier = state.value
        cut = seams.cuts.get(position)
        lead: tuple[bytes, ...] = ()
        if cut is not None:
            lead = cut.lead
            shown = cut.body if cut.mark is None else cut.mark
            digest = xxhash.xxh3_128_digest(b"\0".join((*cut.lead, shown or b"")))
            state.advance(links[position], digest)
            if cut.body != b"":
                pieces[position] = lead if cut.body is None else (*lead, cut.body)
                continue
        stale = _is_stale(conversation, position, seams, state.value)
        if stale:
            state.advance(links[position], b"strip")
            stripped += 1
        if stale or lead or position in seams.edits:
            own = _render(conversation.items[position], seams.edits.get(position), strip=stale)
            pieces[position] = (*lead, *own)
    earlier = state.value if earlier is None else earlier
    body = _join(conversation.items, pieces) if pieces else bytes(raw)
    return Stitched(body, state.value, earlier, stripped)


def _is_stale(conversation: Conversation, position: int, seams: Seams, state: str) -> bool:
    """Whether signed blocks of a message were made from another prefix than the one sent now."""
    seals = conversation.facts[position].seals
    if seals:
        return any(seams.states.get(seal) != state for seal in seals)
    edit = seams.edits.get(position)
    hidden = edit is not None and any(is_signed(m) for m in (*edit.before, edit.message or {}))
    return hidden and state != UNEDITED


def _render(item: msgspec.Raw, edit: Edit | None, *, strip: bool) -> Sequence[bytes | msgspec.Raw]:
    if edit is None:
        return (orjson.dumps(strip_signed(orjson.loads(memoryview(item)))),) if strip else (item,)
    own = edit.message
    if own is None and strip:
        own = orjson.loads(memoryview(item))
    middle = item if own is None else _dump(own, strip=strip)
    before = [_dump(message, strip=strip) for message in edit.before]
    return (*before, middle, *(_dump(message, strip=strip) for message in edit.after))


def _dump(message: JSONObject, *, strip: bool) -> bytes:
    return orjson.dumps(strip_signed(message) if strip else message)


def _join(
    items: Sequence[msgspec.Raw], pieces: Mapping[int, Sequence[bytes | msgspec.Raw]]
) -> bytes:
    woven: list[bytes | msgspec.Raw] = []
    for position, item in enumerate(items):
        piece = pieces.get(position)
        if piece is None:
            woven.append(item)
        else:
            woven.extend(piece)
    return b"[" + b",".join(woven) + b"]"
