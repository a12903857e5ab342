"""A conversation's messages in; what the user said last, and what was said before it, out."""

from collections.abc import Sequence
from dataclasses import dataclass

from proxy.judge.fused import Said
from proxy.wire import JSON, JSONObject

TEXT_PARTS = ("text", "input_text", "output_text")
"""Of what a client sent nothing is sure to have a hash, so that this is no set."""
TOOL_RESULT = "[tool result]"


@dataclass(frozen=True, slots=True)
class Heard:
    """The newest user message with text, its index, and the messages before it, oldest first."""

    latest: str
    position: int
    conversation: Sequence[Said]


def listen(messages: Sequence[JSONObject], most: int = 12) -> Heard | None:
    """Read the end of a conversation; None when no user message has any text.

    Instructions of the application are left out, and so is what tools returned: neither is the
    user's. `most` bounds how many earlier messages are looked at.
    """
    for position in range(len(messages) - 1, -1, -1):
        if messages[position].get("role") == "user":
            latest = read_text(messages[position].get("content"))
            if latest:
                earlier = messages[max(0, position - most) : position]
                said = (_said(message) for message in earlier)
                return Heard(latest, position, [one for one in said if one is not None])
    return None


def read_text(content: JSON) -> str:
    """The text of a message's content, its text parts joined."""
    if isinstance(content, str):
        return content.strip()
    parts = content if isinstance(content, list) else ()
    texts = [
        part["text"]
        for part in parts
        if isinstance(part, dict)
        and part.get("type") in TEXT_PARTS
        and isinstance(part.get("text"), str)
    ]
    return "\n".join(texts).strip()


def _said(message: JSONObject) -> Said | None:
    role = message.get("role")
    if role in ("tool", "function"):
        return Said("tool", TOOL_RESULT)
    if role not in ("user", "assistant"):
        return None
    text = read_text(message.get("content")) or _calls(message.get("tool_calls"))
    return Said(role, text) if text else None


def _calls(calls: JSON) -> str:
    """An assistant that said nothing but called tools."""
    found = calls if isinstance(calls, list) else ()
    functions = (call.get("function") for call in found if isinstance(call, dict))
    names = [f["name"] for f in functions if isinstance(f, dict) and isinstance(f.get("name"), str)]
    return f"[called {', '.join(names)}]" if names else ""
