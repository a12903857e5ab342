"""A raw message array comes in; its conversation goes out, and only what is new in it is read."""

import secrets
from collections import OrderedDict
from collections.abc import Sequence

import msgspec
import xxhash

from proxy.triage.array import (
    Array,
    Item,
    find_anchor,
    measure_gap,
    place_items,
    read_front,
    read_items,
)
from proxy.triage.canon import Fact, read_fact
from proxy.triage.units import Conversation, Start, link_messages, start_of

SHORT = 2048
"""Bytes: what is shorter is read as a whole, and beginnings are kept at multiples of it."""
_EARLIER = 4
"""A beginning so many marks before the last is kept, too: clients change their newest messages."""


class Known(msgspec.Struct, frozen=True, gc=False):
    """A beginning that one request had: what was read of the messages in front of `start`."""

    facts: Sequence[Fact]
    digests: bytes
    starts: list[int]
    gap: bytes
    start: Start


class _Text(msgspec.Struct, frozen=True):
    """An array that is being read: the leading system messages, and where the others begin."""

    raw: memoryview
    seed: int
    user: bytes
    anchor: int
    front: Sequence[msgspec.Raw]
    facts: Sequence[Fact]
    digests: bytes


class Histories:
    """Conversations by the bytes of their requests.

    A client sends every old message again and again, so facts of messages are kept by their bytes,
    and beginnings of whole arrays by hashes of as many bytes as a mark says. The hashes have secret
    seeds that differ by tenant: nobody can find out what another one has sent. There is room for
    `most` messages, and for beginnings with `most_known` messages in all.
    """

    def __init__(
        self, most: int = 16_384, most_known: int = 131_072, seed: int | None = None
    ) -> None:
        self._most = most
        self._most_known = most_known
        self._held = 0
        self._seed = secrets.randbits(64) if seed is None else seed
        self._facts: OrderedDict[bytes, Fact] = OrderedDict()
        self._known: OrderedDict[bytes, Known] = OrderedDict()

    def read(self, raw: bytes | memoryview, tenant: str, user: str | None) -> Conversation | None:
        """The conversation in a `messages` value; None when it is none that we understand."""
        view = memoryview(raw)
        seed = xxhash.xxh3_64_intdigest(tenant.encode(), self._seed)
        text = self._open(view, seed, (user or "").encode()) if len(view) >= SHORT else None
        if text is None:
            return self._read_whole(view, seed, (user or "").encode())
        stride, marks = _mark(text)
        place = next((mark for mark in reversed(marks) if mark in self._known), None)
        conversation: Conversation | None = None
        if place is not None:
            self._known.move_to_end(place)
            conversation = self._go_on(text, self._known[place])
        conversation = conversation or self._read_all(text)
        if conversation is not None and marks and place != marks[-1]:
            self._keep_beginnings(text, conversation, marks, stride)
        return conversation

    def _open(self, raw: memoryview, seed: int, user: bytes) -> _Text | None:
        """What stands in front of the first user message; None when that is more than systems."""
        anchor = find_anchor(raw)
        front = read_front(raw, anchor) if anchor > 0 else None
        read = self._read_facts(front, seed) if front is not None else None
        if front is None or read is None or any(fact.role != "system" for fact in read[0]):
            return None
        return _Text(raw, seed, user, anchor, front, *read)

    def _read_whole(self, raw: memoryview, seed: int, user: bytes) -> Conversation | None:
        items = read_items(raw)
        read = None if items is None else self._read_facts(items, seed)
        if items is None or read is None:
            return None
        return _converse(Array(raw, items, 0, b",", [0]), read, user, Start())

    def _read_all(self, text: _Text) -> Conversation | None:
        """A conversation of which no beginning is known."""
        return self._go_on(text, None) or self._read_whole(text.raw, text.seed, text.user)

    def _go_on(self, text: _Text, known: Known | None) -> Conversation | None:
        """A conversation from where a known beginning ends, or from its first user message."""
        front = len(text.front)
        start = Start() if known is None else known.start
        behind = 0 if known is None else start.position - front
        begin = text.anchor + (0 if known is None else known.starts[behind])
        items = read_items(b"[" + text.raw[begin:])
        read = None if items is None else self._read_facts(items, text.seed)
        if items is None or read is None:
            return None
        gap = measure_gap(text.raw, begin, items) if known is None else known.gap
        starts = place_items(text.raw, begin, items, gap)
        if starts is None:
            return None
        facts, digests = [*text.facts, *read[0]], text.digests + read[1]
        if known is not None:
            shift = known.starts[behind]
            starts = [*known.starts[:behind], *(shift + place for place in starts)]
            facts = [*text.facts, *known.facts[front : start.position], *read[0]]
            digests = text.digests + known.digests[16 * front : 16 * start.position] + read[1]
        array = Array(text.raw, text.front, text.anchor, gap, starts)
        return _converse(array, (facts, digests), text.user, start)

    def _keep_beginnings(
        self, text: _Text, conversation: Conversation, marks: Sequence[bytes], stride: int
    ) -> None:
        """Remembers what the last mark covers, and one before it."""
        items = conversation.items
        if len(items.front) > len(text.front):
            return
        for count in {len(marks), max(1, len(marks) - _EARLIER)}:
            within = len(items.front) + items.count_within(count * stride)
            start = start_of(conversation.chain, within)
            if start is not None and marks[count - 1] not in self._known:
                self._known[marks[count - 1]] = Known(
                    conversation.facts, conversation.digests, items.starts, items.gap, start
                )
                self._held += len(conversation.facts)
        while self._held > self._most_known:
            _, oldest = self._known.popitem(last=False)
            self._held -= len(oldest.facts)

    def _read_facts(self, items: Sequence[Item], seed: int) -> tuple[list[Fact], bytes] | None:
        """A fact per message, and the digests of all; None when one of them is no message."""
        digest = xxhash.xxh3_128_digest
        keys = [digest(item, seed) for item in items]
        facts = [fact for fact in map(self._facts.get, keys) if fact is not None]
        if len(facts) < len(keys):
            facts = []
            for key, item in zip(keys, items, strict=True):
                fact = self._facts.get(key) or read_fact(bytes(item))
                if fact is None:
                    return None
                self._facts[key] = fact
                if len(self._facts) > self._most:
                    self._facts.popitem(last=False)
                facts.append(fact)
        return facts, b"".join(keys)


def _mark(text: _Text) -> tuple[int, list[bytes]]:
    """Hashes of growing beginnings, from the first user message on, each so many bytes longer.

    32 to 64 of them, whatever the length; the places of long arrays are places of short ones, too.
    """
    body = text.raw[text.anchor :]
    stride = max(SHORT, 1 << max(0, len(body).bit_length() - 6))
    whose = xxhash.xxh3_64_intdigest(b"%d " % len(text.front) + text.user, text.seed)
    hasher = xxhash.xxh3_128(seed=whose)
    marks: list[bytes] = []
    for start in range(0, len(body) - stride + 1, stride):
        hasher.update(body[start : start + stride])
        marks.append(hasher.digest())
    return stride, marks


def _converse(
    array: Array, read: tuple[Sequence[Fact], bytes], user: bytes, start: Start
) -> Conversation:
    facts, digests = read
    lead = next((p for p, fact in enumerate(facts) if fact.role != "system"), len(facts))
    return Conversation(array, facts, digests, lead, link_messages(facts, user, start))
