"""The client's messages and the hidden ones of its earlier turns come in; one array goes out."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import orjson

from proxy.wire import JSONObject

_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Memento:
    """The hidden part of an earlier turn, kept under the hash of the conversation up to it.

    `before` are whole hidden rounds, `message` stands in for the client's assistant message and
    `after` follows it; `discovered` are the tools that those rounds loaded.
    """

    discovered: tuple[str, ...] = ()
    before: tuple[JSONObject, ...] = ()
    message: JSONObject | None = None
    after: tuple[JSONObject, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.discovered or self.before or self.message or self.after)

    def encode(self) -> bytes:
        """The stored form."""
        return orjson.dumps([self.discovered, self.before, self.message, self.after])

    @staticmethod
    def decode(value: bytes) -> "Memento":
        """Reads what `encode` wrote."""
        discovered, before, message, after = orjson.loads(value)
        return Memento(tuple(discovered), tuple(before), message, tuple(after))


def weave_messages(raw: bytes | memoryview, mementos: Mapping[int, Memento]) -> bytes:
    """The messages with hidden rounds put back where they happened.

    `mementos` are keyed by the position of the assistant message that ended their turn. All other
    messages keep their bytes; without mementos so does the whole array.
    """
    if not mementos:
        return bytes(raw)
    woven: list[bytes] = []
    for position, item in enumerate(_ITEMS.decode(raw)):
        memento = mementos.get(position)
        if memento is None:
            woven.append(bytes(item))
            continue
        woven.extend(orjson.dumps(message) for message in memento.before)
        woven.append(bytes(item) if memento.message is None else orjson.dumps(memento.message))
        woven.extend(orjson.dumps(message) for message in memento.after)
    return b"[" + b",".join(woven) + b"]"
