"""The bytes of a JSON array come in; its items, each where it stands in those bytes, go out."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

Item: TypeAlias = msgspec.Raw | memoryview

_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_MOST_LEAD = 64 * 1024
_COMPACT, _SPACED = b'{"role":"user"', b'{"role": "user"'
_SPACE = b" \t\r\n"


class Array:
    """The items of an array, as slices of it.

    `front` are items that were read apart; the others begin at `starts`, counted from `anchor`, and
    have `gap` between them. The last start is where one more item would begin.
    """

    __slots__ = ("anchor", "front", "gap", "raw", "starts")

    def __init__(
        self, raw: memoryview, front: Sequence[Item], anchor: int, gap: bytes, starts: list[int]
    ) -> None:
        self.raw = raw
        self.front = front
        self.anchor = anchor
        self.gap = gap
        self.starts = starts

    def __len__(self) -> int:
        return len(self.front) + len(self.starts) - 1

    def __getitem__(self, position: int) -> Item:
        place = position - len(self.front)
        if place < 0:
            return self.front[position]
        return self.raw[
            self.anchor + self.starts[place] : self.anchor + self.starts[place + 1] - len(self.gap)
        ]

    def span(self, start: int, stop: int) -> list[Item]:
        """Consecutive items to be joined by commas: in one piece where they stand so."""
        first = len(self.front)
        if self.gap != b"," or stop - max(start, first) < 2:
            return [self[position] for position in range(start, stop)]
        ahead = list(self.front[start:first])
        begin, end = self.starts[max(start, first) - first], self.starts[stop - first]
        return [*ahead, self.raw[self.anchor + begin : self.anchor + end - 1]]

    def count_within(self, size: int) -> int:
        """How many items behind the front end within so many bytes of it."""
        return bisect_right(self.starts, size + len(self.gap)) - 1


def read_items(raw: bytes | memoryview) -> list[msgspec.Raw] | None:
    """The items of an array; None when it is none."""
    try:
        return _ITEMS.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def find_anchor(raw: memoryview) -> int:
    """Where the first user message begins; -1 when that is not seen at once.

    In a string every quotation mark has a backslash, so these bytes are the beginning of an object.
    """
    head = bytes(raw[:_MOST_LEAD])
    found = head.find(_COMPACT)
    spaced = head.find(_SPACED, 0, found if found >= 0 else len(head))
    return spaced if spaced >= 0 else found


def read_front(raw: memoryview, anchor: int) -> list[msgspec.Raw] | None:
    """The items in front of a place; None when no item of the array begins there."""
    front = bytes(raw[:anchor]).rstrip(_SPACE)
    if front.endswith(b","):
        front = front[:-1]
    elif front != b"[":
        return None
    return read_items(front + b"]")


def measure_gap(raw: memoryview, anchor: int, items: Sequence[msgspec.Raw]) -> bytes:
    """What stands between the first items."""
    if len(items) < 2:
        return b","
    end = anchor + len(memoryview(items[0]))
    ahead = bytes(raw[end : end + 64])
    return ahead[: len(ahead) - len(ahead.lstrip(_SPACE)[1:].lstrip(_SPACE))]


def place_items(
    raw: memoryview, begin: int, items: Sequence[msgspec.Raw], gap: bytes
) -> list[int] | None:
    """Where the items begin, counted from `begin`, and where one more would; None if not so.

    The bytes are compared, since nothing else proves that every gap is the same.
    """
    text = gap.join(items)
    stop = begin + len(text)
    if bytes(raw[begin:stop]) != text or bytes(raw[stop:]).strip(_SPACE) != b"]":
        return None
    starts = [0]
    place = 0
    for item in items:
        place += len(memoryview(item)) + len(gap)
        starts.append(place)
    return starts
