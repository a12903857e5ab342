"""Assistant messages come in; whether a provider signed their reasoning, and copies without, out.

Anthropic signs each thinking block against the whole prefix before it, so a block is refused when
anything in front of it was edited. A Gemini thought signature belongs to its call and stays.
"""

import re
from collections.abc import Iterator, Mapping

import xxhash

from proxy.wire import JSON, JSONObject

FIELDS = ("thinking_blocks", "reasoning_details", "reasoning_signature", "signature")
PARTS = ("thinking", "redacted_thinking")


SEALS = ("signature", "data", "reasoning_signature")
"""Members that hold a signature, or a block that is encrypted as a whole."""
_FAMILY = re.compile(r"[a-z]{3,}")
_SEAL = re.compile(rb'"(?:signature|data|reasoning_signature)"\s*:\s*"([^"\\]{8,})"')


def read_seals(message: JSONObject) -> tuple[bytes, ...]:
    """Hashes of the signatures and encrypted blocks in an assistant message."""
    content = message.get("content")
    parts = [part for part in content if _is_thinking(part)] if isinstance(content, list) else []
    held: list[JSON] = [message.get(name) for name in FIELDS]
    found = [*_find({name: message.get(name) for name in FIELDS}), *_find(held), *_find(parts)]
    return tuple(dict.fromkeys(seal_of(text.encode()) for text in found))


def is_signed(message: JSONObject) -> bool:
    """Whether the message holds a signed or redacted thinking block."""
    return bool(read_seals(message))


def family_of(model: str) -> str:
    """Whose signatures a model understands: `claude` of `anthropic/claude-opus-4-5`."""
    found = _FAMILY.search(model.lower().rpartition("/")[2])
    return found[0] if found else ""


def scan_seals(data: bytes) -> list[bytes]:
    """Hashes of whatever looks like a signature in a piece of a reply, stream or JSON."""
    return [seal_of(text) for text in _SEAL.findall(data)]


def seal_of(text: bytes) -> bytes:
    """The hash under which a signature is known."""
    return xxhash.xxh3_128_digest(text)


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


def _find(value: JSON) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _find(item)
    elif isinstance(value, Mapping):
        for name in SEALS:
            text = value.get(name)
            if isinstance(text, str) and text:
                yield text


def _is_thinking(part: JSON) -> bool:
    return isinstance(part, Mapping) and part.get("type") in PARTS
