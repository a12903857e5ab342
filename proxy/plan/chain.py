"""Messages come in; a hash per prefix of the conversation goes out, equal for equal histories."""

from collections.abc import Iterable, Iterator, Sequence

import xxhash

from proxy.wire import JSON, JSONObject, dump


def chain_hashes(messages: Iterable[JSONObject], link: str = "") -> list[str]:
    """One hash per message, each covering all messages up to and including it.

    `link` is what the chain begins with: whose conversation it is, say.

    System and developer messages do not count: applications put dates and retrieved text there.
    """
    hashes: list[str] = []
    for message in messages:
        link = extend_chain(link, message)
        hashes.append(link)
    return hashes


def extend_chain(link: str, message: JSONObject) -> str:
    """The hash of a conversation that is one message longer."""
    role = message.get("role")
    if role in ("system", "developer"):
        return link
    return xxhash.xxh3_128_hexdigest(link.encode() + _canonical(message, role))


def read_text(content: JSON) -> str:
    """The text of a message's content, whatever form the client gave it."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(_part_texts(content))


def call_ids(message: JSONObject) -> list[str]:
    """The ids of the tool calls in an assistant message, in order."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return []
    return [
        call["id"]
        for call in calls
        if isinstance(call, dict) and isinstance(call.get("id"), str) and call["id"]
    ]


def _part_texts(parts: Sequence[JSON]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]


def _canonical(message: JSONObject, role: JSON) -> bytes:
    """What makes two messages the same turn: role, text, calls and what a result answers.

    Null or absent content, outer white space, `name`, annotations and refusals make no difference
    because clients drop or rewrite them between turns.
    """
    content = message.get("content")
    if isinstance(content, str) and "tool_calls" not in message:
        return dump([role, content.strip(), None, (), message.get("tool_call_id")])
    text = read_text(content).strip()
    parts: JSON = None
    if isinstance(content, list) and not text:
        parts = content
    answered = message.get("tool_call_id")
    return dump([role, text, parts, sorted(call_ids(message)), answered])
