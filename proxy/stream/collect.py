"""The chunks of one upstream round, or its JSON reply, come in; one Answer goes out."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from proxy.stream.calls import (
    Call,
    CallAssembler,
    OpenCall,
    extend,
    join_text,
    made_id,
    read_arguments,
    read_id,
    read_name,
)
from proxy.stream.chunk import Delta
from proxy.stream.head import note_head, read_head
from proxy.wire import JSON, JSONObject

__all__ = ["Answer", "Call", "Collector", "read_completion", "read_error", "sum_usage"]

_GROWING = frozenset({"audio", "function_call"})  # objects whose texts arrive in parts


@dataclass(slots=True)
class Answer:
    """What one upstream round said."""

    message: JSONObject
    """The assistant message, unknown fields and signatures included, fit for a history."""
    calls: list[Call]
    finish_reason: str | None
    usage: JSONObject | None
    head: JSONObject
    """id, created, model, system_fingerprint and service_tier: the first real values."""
    error: JSONObject | None
    complete: bool
    """A finish reason or `[DONE]` was seen, and no error."""


class Collector:
    """Puts one round together from its chunks, whichever way the provider deviates.

    Only the first choice counts. `salt` keeps made ids of calls apart when several rounds share
    the same response id.
    """

    def __init__(self, salt: str = "") -> None:
        self.head: JSONObject = {}
        self.usage: JSONObject | None = None
        self.finish_reason: str | None = None
        self.error: JSONObject | None = None
        self.done = False
        self._latest: tuple[JSON, ...] = ()
        self._salt = salt
        self._role: str | None = None
        self._texts: defaultdict[str, list[str]] = defaultdict(list)
        self._fields: JSONObject = {}
        self.assembler = CallAssembler()

    def add(self, chunk: JSON) -> None:
        """Take a whole chunk; anything but an object is passed over."""
        if not isinstance(chunk, dict):
            return
        self.add_top(chunk)
        for choice in read_choices(chunk):
            self.add_choice(choice)

    def add_top(self, chunk: JSONObject) -> None:
        """Take what a chunk says outside its choices."""
        head = read_head(chunk)
        if head != self._latest:
            self._latest = head
            note_head(self.head, chunk)
        usage = chunk.get("usage")
        if usage and isinstance(usage, dict):
            self.usage = usage
        self.error = self.error or read_error(chunk)

    def add_choice(self, choice: JSON) -> list[tuple[OpenCall, JSONObject]]:
        """Take one choice of a chunk; its tool call fragments come back with their calls."""
        if not is_first(choice):
            return []
        reason = choice.get("finish_reason")
        if reason and self.finish_reason is None:
            self.finish_reason = str(reason)
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return []
        for key, value in delta.items():
            if key == "role":
                self._role = self._role or value
            elif key != "tool_calls" and value is not None:
                self._grow(key, value)
        return self.assembler.add(delta.get("tool_calls"), self._seed())

    def add_content(self, text: str) -> None:
        """Take the words of a delta that has nothing else."""
        if self._fields:
            self._say("content", text)
        else:
            self._texts["content"].append(text)

    def add_text(self, delta: Delta) -> None:
        """Take the words of a text chunk's delta: the quick way to `add`."""
        if delta.content is not None:
            self.add_content(delta.content)
        if delta.reasoning_content is not None:
            self._say("reasoning_content", delta.reasoning_content)
        if delta.reasoning is not None:
            self._say("reasoning", delta.reasoning)
        if delta.reasoning_details is not None:
            self._grow("reasoning_details", delta.reasoning_details)
        if delta.refusal is not None:
            self._say("refusal", delta.refusal)
        if delta.role is not None:
            self._role = self._role or delta.role

    def answer(self) -> Answer:
        """The round so far."""
        calls = [
            Call(index, call.fix_id(), call.name, call.arguments, call.object())
            for index, call in enumerate(self.assembler.calls)
        ]
        return Answer(
            message=self._message([call.raw for call in calls]),
            calls=calls,
            finish_reason=self.finish_reason,
            usage=self.usage,
            head=dict(self.head),
            error=self.error,
            complete=self.error is None and (self.done or self.finish_reason is not None),
        )

    def _message(self, calls: list[JSONObject]) -> JSONObject:
        said = {key: join_text(pieces) for key, pieces in self._texts.items()} | self._fields
        content = said.pop("content", None)
        message = {
            "role": self._role or "assistant",
            "content": None if calls and not content else content,
            **said,
        }
        return message | {"tool_calls": calls} if calls else message

    def _say(self, key: str, text: str) -> None:
        parts = self._fields.get(key) if self._fields else None
        if isinstance(parts, list):
            said = parts.pop()["text"] if parts and _is_text_part(parts[-1]) else ""
            parts.append(_text_part(said + text))
        else:
            self._texts[key].append(text)

    def _grow(self, key: str, value: JSON) -> None:
        if isinstance(value, str):
            self._say(key, value)
            return
        said = join_text(self._texts.pop(key, []))
        earlier = self._fields.get(key)
        if isinstance(earlier, list) and isinstance(value, list):
            earlier.extend(value)
        elif isinstance(value, list):
            self._fields[key] = [_text_part(said), *value] if said else list(value)
        elif key in _GROWING and isinstance(earlier, dict) and isinstance(value, dict):
            parts = {name: extend(earlier.get(name), part) for name, part in value.items()}
            self._fields[key] = earlier | parts
        else:
            self._fields[key] = value

    def _seed(self) -> str:
        return f"{self._salt}/{self.head.get('id')}/{self.head.get('created')}"


def read_completion(body: JSONObject) -> Answer:
    """The answer in a reply that did not stream; the message stays verbatim but for missing ids."""
    choice = next(filter(is_first, read_choices(body)), {})
    message = choice.get("message")
    head: JSONObject = {}
    note_head(head, body)
    error = read_error(body)
    answer = Answer(
        message=message if isinstance(message, dict) else {"role": "assistant", "content": None},
        calls=[],
        finish_reason=str(choice["finish_reason"]) if choice.get("finish_reason") else None,
        usage=body["usage"] if body.get("usage") and isinstance(body["usage"], dict) else None,
        head=head,
        error=error,
        complete=error is None and isinstance(message, dict),
    )
    raws = answer.message.get("tool_calls")
    if isinstance(raws, list) and raws:
        answer.calls = [
            _read_call(index, raw, f"{head.get('id')}/{head.get('created')}/{index}")
            for index, raw in enumerate(raw for raw in raws if isinstance(raw, dict))
        ]
        answer.message = answer.message | {"tool_calls": [call.raw for call in answer.calls]}
    return answer


def _read_call(index: int, raw: JSONObject, seed: str) -> Call:
    name = read_name(raw)
    id_ = read_id(raw) or made_id(seed, name)
    return Call(
        index, id_, name, read_arguments(raw), raw if raw.get("id") == id_ else raw | {"id": id_}
    )


def sum_usage(usages: Sequence[JSONObject | None]) -> JSONObject | None:
    """Field-wise sum, details included; what no round states stays absent, never 0."""
    total: JSONObject | None = None
    for usage in usages:
        if usage:
            total = usage if total is None else _add(total, usage)
    return total


def _add(total: JSONObject, usage: JSONObject) -> JSONObject:
    added = dict(total)
    for key, value in usage.items():
        earlier = added.get(key)
        if isinstance(earlier, dict) and isinstance(value, dict):
            added[key] = _add(earlier, value)
        elif _is_number(earlier) and _is_number(value):
            added[key] = earlier + value
        elif value is not None or key not in added:
            added[key] = value
    return added


def _is_number(value: JSON) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_choices(chunk: JSONObject) -> list[JSON]:
    choices = chunk.get("choices")
    return choices if isinstance(choices, list) else []


def is_first(choice: JSON) -> TypeGuard[JSONObject]:
    """Whether this is the choice that Usher reads: the only one of a turn that it takes part in."""
    return isinstance(choice, dict) and choice.get("index") in (None, 0)


def read_error(chunk: JSONObject) -> JSONObject | None:
    """The error that a chunk or body states instead of an answer."""
    error = chunk.get("error")
    if isinstance(error, dict) and error:
        return error
    if error:
        return {"message": str(error)}
    return chunk if chunk.get("object") == "error" else None


def _is_text_part(part: JSON) -> bool:
    return isinstance(part, dict) and part.keys() == {"type", "text"}


def _text_part(text: str) -> JSONObject:
    return {"type": "text", "text": text}
