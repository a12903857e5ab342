"""What the judge reads of a conversation in; the two texts that the gate's model compares out.

A message is read against the answer before it, because "yes" is a request only after an offer. What
the user merely quotes is marked: a request in it is somebody else's.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from proxy.wire import JSON

MOST_CHARS = 2_000
"""Of each text; longer ones keep their beginning and their end."""

_QUOTED = re.compile(
    r"```.*?(?:```|\Z)"
    r"|<(?P<tag>[a-z_]{2,20})>.*?</(?P=tag)>"
    r"|`[^`\n]+`"
    r"|\"[^\"]{2,}?\"|“[^”]{2,}?”|„[^“”]{2,}?[“”]|«[^»]{2,}?»|‹[^›]{2,}?›|「[^」]{2,}?」|『[^』]{2,}?』"
    r"|(?<!\w)['‘][^'’\n]{6,}?['’](?!\w)"
    r"|^(?:>|\|)[^\n]*"
    r"|^-{3,}\s*$.*?(?:^-{3,}\s*$|\Z)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)

EASE = 0.9
"""Logits by which the threshold is lower in scripts with few rows to learn from: doubts pass."""
_SCARCE = re.compile("[\u0600-\u06ff\u3040-\u30ff]")
"""Arabic letters and Japanese kana, whose languages missed most requests out of fold."""

_CLAUSE = re.compile(r"(?<=[.!?;:,…—–])\s+|(?<=[。！？；，、：])|\n+")


@dataclass(frozen=True, slots=True)
class Pair:
    """`before` is the assistant's last answer; `spans` are the message's own and quoted parts."""

    before: str
    spans: tuple[tuple[str, bool], ...]

    @property
    def latest(self) -> str:
        """The whole message."""
        return "".join(text for text, _ in self.spans)

    @property
    def own(self) -> str:
        """The message without what it quotes."""
        return "".join(text for text, quoted in self.spans if not quoted).strip()

    @property
    def quotes(self) -> bool:
        """Whether anything is quoted."""
        return any(quoted for _, quoted in self.spans)


def read_pair(state: JSON) -> Pair:
    """Read a judge's state; anything unexpected is an empty text."""
    if not isinstance(state, Mapping):
        return Pair("", ())
    latest = state.get("latest")
    text = clip(latest) if isinstance(latest, str) else ""
    return Pair(_find_before(state.get("conversation")), tuple(_split(text)))


def clip(text: str, most: int = MOST_CHARS) -> str:
    """A text no longer than `most`, its middle left out."""
    text = text.strip()
    if len(text) <= most:
        return text
    head = most * 3 // 5
    return f"{text[:head]} … {text[head - most :]}"


def split_clauses(text: str) -> list[str]:
    """The parts of a text between its punctuation marks."""
    return [part.strip() for part in _CLAUSE.split(text) if part and part.strip()]


def _find_before(conversation: JSON) -> str:
    """The assistant's text just before the message; tool calls between do not count."""
    if not isinstance(conversation, list):
        return ""
    for said in reversed(conversation):
        if not isinstance(said, Mapping) or said.get("role") == "user":
            return ""
        content = said.get("content")
        if said.get("role") == "assistant" and isinstance(content, str) and content.strip():
            return clip(content, 600)
    return ""


def _split(text: str) -> Iterator[tuple[str, bool]]:
    end = 0
    for match in _QUOTED.finditer(text):
        if match.start() > end:
            yield text[end : match.start()], False
        yield match.group(), True
        end = match.end()
    if end < len(text):
        yield text[end:], False


def ease_of(text: str) -> float:
    """How much sooner a message passes because of its script."""
    return EASE if _SCARCE.search(text) else 0.0
