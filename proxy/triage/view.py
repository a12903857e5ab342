"""A unit's messages come in; what a judge, a writer and an index read of them goes out."""

import re
from collections.abc import Iterator, Sequence

import orjson

from proxy.triage.recall import describe
from proxy.triage.units import Conversation, Unit
from proxy.wire import JSONObject

CONSTRAINT = re.compile(
    r"\b(?:must|never|always|only|shall|required?|forbidden|do not|don't|cannot|may not|exactly"
    r"|at (?:most|least)|no (?:more|less|later|earlier) than|deadline|limit"
    r"|muss|müssen|nie(?:mals)?|immer|nur|darf|höchstens|mindestens|jamais|toujours|doit"
    r"|seulement|nunca|siempre|debe|solo|sólo|sempre|deve|mai)\b"
    r"|必须|必須|绝不|不得|只能|禁止|должен|никогда|только|всегда",
    re.IGNORECASE,
)
FIGURE = re.compile(
    r"\b\d+(?:[.,]\d+)?\s?(?:%|ms|s|min|h|kb|mb|gb|tb|px|km|kg|usd|eur|€|\$|°)(?!\w)"
    r"|\b(?:def|class|function|fn|interface|struct)\s+\w+|(?:^|\s)(?:~|\.{0,2})/[\w./-]{3,}",
    re.IGNORECASE,
)
PINNED = re.compile(
    r"\b(?:important|keep (?:this|it|exactly)|verbatim|word for word|remember (?:this|that|my|to)"
    r"|do(?: not|n't) forget|never forget|wichtig|wörtlich|merk dir|vergiss nicht"
    r"|importante?|retiens|n'oublie pas|recuerda|no olvides|ricorda|lembre)\b"
    r"|重要|记住|覚えて|запомни|важно",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"“„«「]([^\"”“»」\n]{12,300})[\"”“»」]|^>\s*(.{12,300})$", re.MULTILINE)
_SENTENCE = re.compile(r"[^\n.!?。！？]{40,300}")
_ENDS = re.compile(r"\n+|(?<=[.!?。！？])\s+")
_LABEL_CHARS = 56
_MOST_LINE = 300


def read_unit(conversation: Conversation, unit: Unit) -> list[JSONObject]:
    """The unit's messages in words."""
    return [describe(conversation.read(position)) for position in unit.positions]


def show_unit(messages: Sequence[JSONObject], most: int) -> str:
    """At most so many characters, by structure: both ends and the lines that bind."""
    text = "\n".join(_show_message(message) for message in messages)
    if len(text) <= most:
        return text
    edge = most * 5 // 16
    head, tail = text[:edge], text[len(text) - edge :]
    middle = text[edge : len(text) - edge]
    lines = _take_lines(binding_lines(middle), most - 2 * edge - 12)
    return "\n[…]\n".join((head, *([lines] if lines else []), tail))


def binding_lines(text: str) -> Iterator[str]:
    """Lines with constraints first, then those with figures, signatures and paths."""
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line]
    yield from (line for line in lines if CONSTRAINT.search(line))
    yield from (line for line in lines if FIGURE.search(line) and not CONSTRAINT.search(line))


def find_constraints(messages: Sequence[JSONObject]) -> list[str]:
    """The sentences of the user's own words that state what must or must not be."""
    return [
        sentence.strip()
        for message in messages
        if message["role"] == "user"
        for sentence in _ENDS.split(message["content"])
        if CONSTRAINT.search(sentence)
    ]


def make_label(unit: Unit, messages: Sequence[JSONObject]) -> str:
    """A few words by which a model can tell what a unit was about; a reply's stand before it."""
    if unit.kind == "reply":
        return "the reply"
    parts: list[str] = []
    for message in messages:
        parts.extend(_show_call(call) for call in message.get("calls", ()))
        if message["role"] != "tool" and message["content"].strip():
            parts.append(message["content"])
        if parts and len(parts[0]) > 20:
            break
    return _short(" ".join(" ".join(parts).split()), _LABEL_CHARS) or "empty"


def is_pinned(messages: Sequence[JSONObject]) -> bool:
    """Whether the user said that this must not be lost."""
    return any(
        PINNED.search(message["content"]) for message in messages if message["role"] == "user"
    )


def find_quotes(text: str) -> list[str]:
    """What a message may quote of earlier ones: marked quotations and whole sentences."""
    quoted = [first or second for first, second in _QUOTED.findall(text)]
    return [part.strip() for part in (*quoted, *_SENTENCE.findall(text)) if part.strip()]


def is_quoted(messages: Sequence[JSONObject], quotes: Sequence[str]) -> bool:
    """Whether one of the quotations stands in the unit."""
    return any(quote in message["content"] for message in messages for quote in quotes)


def _show_message(message: JSONObject) -> str:
    content = message["content"]
    if message["role"] == "tool":
        return f"result ({len(content)} characters): {content}"
    calls = "".join(f"\ncalls {c['name']} {c['arguments']}" for c in message.get("calls", ()))
    return f"{message['role']}: {content}{calls}"


def _show_call(call: JSONObject) -> str:
    """A call by its name and the values that tell it from others."""
    text = str(call["arguments"] or "")
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = text
    if isinstance(value, dict):
        told = [v for v in value.values() if v and not isinstance(v, bool)]
        text = ", ".join(v if isinstance(v, str) else orjson.dumps(v).decode() for v in told)
    return f"{call['name']}({_short(text, 60)})"


def _take_lines(lines: Iterator[str], most: int) -> str:
    taken: list[str] = []
    for line in lines:
        most -= len(line[:_MOST_LINE]) + 1
        if most < 0:
            break
        taken.append(line[:_MOST_LINE])
    return "\n".join(taken)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
