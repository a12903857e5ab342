"""The client's messages and the hidden ones of its earlier turns come in; one array goes out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec
import orjson

from proxy.wire import JSON, JSONObject, dump

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
        return dump([self.discovered, self.before, self.message, self.after])

    def edit(self, sent: JSONObject) -> "Edit":
        """How it is put back at the message that the client sent."""
        message = self.message
        return Edit(self.before, message and adopt_calls(message, sent), self.after)

    @staticmethod
    def decode(value: bytes) -> "Memento":
        """Reads what `encode` wrote."""
        discovered, before, message, after = orjson.loads(value)
        return Memento(tuple(discovered), tuple(before), message, tuple(after))


@dataclass(frozen=True, slots=True)
class Edit:
    """What happens at one message: others before it, one in its place, others after it."""

    before: tuple[JSONObject, ...] = ()
    message: JSONObject | None = None
    after: tuple[JSONObject, ...] = ()


def adopt_calls(kept: JSONObject, sent: JSONObject) -> JSONObject:
    """A kept message whose calls are those that the client has now.

    People correct a call before it runs; one that is only written differently keeps its bytes.
    """
    calls = kept.get("tool_calls")
    if not isinstance(calls, list):
        return kept
    theirs = dict(_functions_by_id(sent.get("tool_calls")))
    adopted = [_adopt(call, theirs.get(call.get("id"))) for call in calls]
    return {**kept, "tool_calls": adopted}


def _functions_by_id(calls: JSON) -> Iterator[tuple[str, JSONObject]]:
    for call in calls if isinstance(calls, list) else ():
        known = isinstance(call, dict) and isinstance(call.get("id"), str)
        if known and isinstance(call.get("function"), dict):
            yield call["id"], call["function"]


def _adopt(call: JSONObject, function: JSONObject | None) -> JSONObject:
    ours = call.get("function")
    if function is None or not isinstance(ours, dict) or _meaning(ours) == _meaning(function):
        return call
    return {**call, "function": function}


def _meaning(function: JSONObject) -> tuple[JSON, JSON]:
    """Name and arguments, however they are written."""
    name, arguments = function.get("name"), function.get("arguments")
    try:
        return name, orjson.loads(arguments) if isinstance(arguments, str) else arguments
    except orjson.JSONDecodeError:
        return name, arguments


def weave_messages(raw: bytes | memoryview, edits: Mapping[int, Edit]) -> bytes:
    """The messages with some put in or replaced, keyed by position.

    All other messages keep their bytes; without edits so does the whole array.
    """
    if not edits:
        return bytes(raw)
    woven: list[bytes] = []
    for position, item in enumerate(_ITEMS.decode(raw)):
        edit = edits.get(position)
        if edit is None:
            woven.append(bytes(item))
            continue
        woven.extend(dump(message) for message in edit.before)
        woven.append(bytes(item) if edit.message is None else dump(edit.message))
        woven.extend(dump(message) for message in edit.after)
    return b"[" + b",".join(woven) + b"]"
