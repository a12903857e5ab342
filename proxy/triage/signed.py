"""Assistant messages come in; whether a provider signed their reasoning, and copies without, out.

Anthropic signs each thinking block against the whole prefix before it, so a block is refused when
anything in front of it was edited. A Gemini thought signature belongs to its call and stays.
"""

from collections.abc import Mapping

from proxy.wire import JSON, JSONObject

FIELDS = ("thinking_blocks", "reasoning_details", "reasoning_signature", "signature")
PARTS = ("thinking", "redacted_thinking")


def is_signed(message: JSONObject) -> bool:
    """Whether the message holds a signed or redacted thinking block."""
    if any(message.get(name) for name in FIELDS):
        return True
    content = message.get("content")
    return isinstance(content, list) and any(_is_thinking(part) for part in content)


def strip_signed(message: JSONObject) -> JSONObject:
    """The message without its signed blocks; the same object when it has none."""
    if not is_signed(message):
        return message
    rest = {name: value for name, value in message.items() if name not in FIELDS}
    content = rest.get("content")
    if isinstance(content, list):
        kept = [part for part in content if not _is_thinking(part)]
        rest["content"] = kept or ("" if not rest.get("tool_calls") else None)
    return rest


def _is_thinking(part: JSON) -> bool:
    return isinstance(part, Mapping) and part.get("type") in PARTS
