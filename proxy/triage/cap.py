"""Oversized tool results come in; head and tail with a line about the middle go out."""

from collections import OrderedDict
from collections.abc import Container, Iterator

import orjson
import xxhash

from proxy.plan.chain import read_text
from proxy.triage.render import Cut
from proxy.triage.units import Conversation, Unit
from proxy.wire import JSON

_MOST_KEPT = 256


class Cap:
    """Cuts single tool results; the same result is cut at the same place on every request."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[bytes, int, str | None], bytes | None] = OrderedDict()

    def cuts(
        self, conversation: Conversation, spared: Container[int], recall: str | None
    ) -> Iterator[tuple[int, Cut]]:
        """The cuts of everything that is too long; `spared` are positions cut already."""
        for unit in conversation.units:
            if unit.size <= self._most:
                continue
            for position in self._too_long(conversation, unit, spared):
                body = self._cut(conversation, unit, position, recall)
                if body is not None:
                    yield position, Cut((), body, b"cap")

    def _too_long(
        self, conversation: Conversation, unit: Unit, spared: Container[int]
    ) -> Iterator[int]:
        for position in unit.positions:
            fact = conversation.facts[position]
            if fact.role == "tool" and fact.content_chars > self._most and position not in spared:
                yield position

    def _cut(
        self, conversation: Conversation, unit: Unit, position: int, recall: str | None
    ) -> bytes | None:
        item = conversation.items[position]
        key = (xxhash.xxh3_128_digest(item), unit.number, recall)
        if key not in self._kept:
            self._kept[key] = cut_result(bytes(item), self._most, unit.number, recall)
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return self._kept[key]


def cut_result(raw: bytes, most: int, number: int, recall: str | None) -> bytes | None:
    """One tool message with its text cut; None for content that is not all text."""
    message = orjson.loads(raw)
    content: JSON = message.get("content")
    if not isinstance(content, str) and not _is_text(content):
        return None
    text = read_text(content)
    tail = most // 3
    head = most - tail
    note = f"{len(text) - most} of {len(text)} characters of this result were left out"
    if recall is not None:
        note += f"; {recall}({number}) returns them"
    message["content"] = f"{text[:head]}\n[… {note} …]\n{text[len(text) - tail :]}"
    return orjson.dumps(message)


def _is_text(content: JSON) -> bool:
    return isinstance(content, list) and all(
        isinstance(part, dict) and part.get("type") in ("text", None) for part in content
    )
