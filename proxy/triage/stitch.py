"""Cuts, hidden messages of earlier turns and what is known of signatures come in; one array out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson
import xxhash

from proxy.plan.weave import Edit
from proxy.triage.array import Array, Item
from proxy.triage.render import Cut
from proxy.triage.signed import is_signed, strip_signed
from proxy.triage.units import Conversation
from proxy.wire import JSONObject

UNEDITED = ""


@dataclass(frozen=True, slots=True)
class Stitched:
    """A whole `messages` array. `state` names the edits in it; equal states, equal prefixes.

    `earlier` is the state at the end of the request before this one. `stale` are positions whose
    signed blocks are not in it: made from another prefix, or gone with their messages. Without
    anything `edited` the bytes are the client's.
    """

    body: bytes | memoryview
    state: str
    earlier: str
    stale: tuple[int, ...] = ()
    edited: bool = True


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


@dataclass(frozen=True, slots=True)
class Prefix:
    """The finished beginning of an array: the messages after the leading system ones up to `stop`.

    It is what a plan made of them, for as long as their bytes are those of `fingerprint`.
    """

    stop: int
    lead: int
    fingerprint: bytes
    body: bytes
    state: str

    def fits(self, conversation: Conversation, edits: Mapping[int, Edit]) -> bool:
        """Whether a conversation begins so, and was already longer before this request."""
        if self.lead != conversation.lead or len(conversation.heads) < 2:
            return False
        return (
            conversation.heads[-2] >= self.stop - 1
            and not any(position < self.stop for position in edits)
            and conversation.fingerprint(self.stop) == self.fingerprint
        )


def stitch(
    conversation: Conversation, raw: bytes | memoryview, seams: Seams, known: Prefix | None = None
) -> Stitched:
    """The array that goes up; the client's own bytes when nothing is edited.

    What a `known` beginning covers is taken from it.
    """
    signed = conversation.chain.signed
    if known is None and not (seams.cuts or seams.edits or signed):
        return Stitched(raw, UNEDITED, UNEDITED, edited=False)
    start = known.stop if known is not None else 0
    count = len(conversation.items)
    begun = known.state if known is not None else UNEDITED
    walk = _walk(conversation, seams, range(start, count), begun)
    if known is None and not walk.pieces:
        return Stitched(raw, walk.state, walk.earlier, edited=False)
    items = conversation.items
    front: list[bytes | Item] = []
    if known is not None:
        front = [*items.span(0, known.lead), *([known.body] if known.body else ())]
    body = b",".join([*front, *_lay(items, walk.pieces, start, count)])
    return Stitched(b"[" + body + b"]", walk.state, walk.earlier, tuple(walk.stale))


def finish_prefix(conversation: Conversation, seams: Seams) -> Prefix | None:
    """The beginning up to the last cut, if it holds nothing that may still change."""
    stop = max(seams.cuts, default=-1) + 1
    sealed = any(position < stop for position in conversation.chain.signed)
    if not stop or sealed or any(position < stop for position in seams.edits):
        return None
    walk = _walk(conversation, Seams(seams.cuts), range(stop), UNEDITED)
    lead = conversation.lead
    body = b",".join(_lay(conversation.items, walk.pieces, lead, stop))
    return Prefix(stop, lead, conversation.fingerprint(stop), body, walk.state)


@dataclass(slots=True)
class _Walk:
    """What a walk along the edits has come to."""

    state: str
    earlier: str
    stale: list[int] = field(default_factory=list)
    pieces: dict[int, Sequence[bytes | Item]] = field(default_factory=dict)


def _walk(conversation: Conversation, seams: Seams, stretch: range, begun: str) -> _Walk:
    links = conversation.links
    state = _State(begun)
    walk = _Walk(begun, begun)
    earlier: str | None = None
    previous = conversation.heads[-2] if len(conversation.heads) > 1 else -1
    special = {*seams.cuts, *seams.edits, *conversation.chain.signed}
    for position in sorted(position for position in special if position in stretch):
        if earlier is None and position > previous:
            earlier = state.value
        cut = seams.cuts.get(position)
        lead: tuple[bytes, ...] = ()
        if cut is not None:
            lead = cut.lead
            state.advance(links[position], cut.digest())
            if cut.body != b"":
                walk.stale.extend([position] if conversation.facts[position].seals else [])
                walk.pieces[position] = lead if cut.body is None else (*lead, cut.body)
                continue
        stale = _is_stale(conversation, position, seams, state.value)
        if stale:
            state.advance(links[position], b"strip")
            walk.stale.append(position)
        if stale or lead or position in seams.edits:
            own = _render(conversation.items[position], seams.edits.get(position), strip=stale)
            walk.pieces[position] = (*lead, *own)
    walk.state = state.value
    walk.earlier = state.value if earlier is None else earlier
    return walk


def _is_stale(conversation: Conversation, position: int, seams: Seams, state: str) -> bool:
    """Whether signed blocks of a message were made from another prefix than the one sent now."""
    seals = conversation.facts[position].seals
    if seals:
        return any(seams.states.get(seal) != state for seal in seals)
    edit = seams.edits.get(position)
    hidden = edit is not None and any(is_signed(m) for m in (*edit.before, edit.message or {}))
    return hidden and state != UNEDITED


def _render(item: Item, edit: Edit | None, *, strip: bool) -> Sequence[bytes | Item]:
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


def _lay(
    items: Array, pieces: Mapping[int, Sequence[bytes | Item]], start: int, stop: int
) -> list[bytes | Item]:
    """The items of a stretch, the edited ones as their pieces."""
    laid: list[bytes | Item] = []
    for position in sorted(pieces):
        laid.extend(items.span(start, position))
        laid.extend(pieces[position])
        start = position + 1
    laid.extend(items.span(start, stop))
    return laid
