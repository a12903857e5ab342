"""What a user said and what a model would store come in; whether one backs the other goes out.

A model can be talked into a memory by a page, a tool result or its own invention. None of that is
here: the evidence is the user's own words, and an offer only where the user has accepted it.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from proxy.memory.gate.pair import read_pair

_WORD = re.compile(r"[^\W_]+")
_BLOCK = re.compile(r"```|^\s*(?:>|\||-{3,})|</", re.MULTILINE)
"""Quotations that are pasted rather than spoken: code, tags, rules, quote marks of mail."""
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_COMMON_TEXT = """
the a an and or of to in on at is are was be has have had with for from that this it its as by
user users his her their he she likes prefers wants name named called lives works not no yes new
now about der die das und ist ein eine le la les un une et est de el los las y es o il e di che
что и в на het een en
"""
_COMMON = frozenset(_COMMON_TEXT.split())
_NOUNS = re.compile(r"\b(?:der|die|das|ist|und|nicht|ein|eine|im|wohnt|hat|heißt)\b", re.IGNORECASE)
"""German, in which a capital marks no name."""
STEM = 4
LEAST_SHARE, MOST_SHARE = 0.3, 0.5
MOST_REPLY = 120
"""A longer message than that stands for itself and is no mere answer to an offer."""


@dataclass(frozen=True, slots=True)
class Heard:
    """The agent's whole input: the newest message, the answer and the user's words before it."""

    latest: str
    offer: str = ""
    earlier: tuple[str, ...] = ()


def own_words(text: str) -> str:
    """A message without what is pasted into it."""
    pair = read_pair({"latest": text})
    return " ".join(part for part, quoted in pair.spans if not (quoted and _BLOCK.search(part)))


def backs(heard: Heard, value: str) -> bool:
    """Whether the user's words hold enough of the value, and every name and figure in it."""
    said = own_words(heard.latest)
    if _covers(said, value):
        return True
    if len(said) > MOST_REPLY:
        return False
    return _covers(" ".join([said, heard.offer, *map(own_words, heard.earlier)]), value)


def _covers(said: str, value: str) -> bool:
    wanted, known = _tokens(value), _tokens(said)
    if not wanted:
        return False
    found = len(wanted & known) / len(wanted)
    if _NOUNS.search(value):
        return found >= MOST_SHARE
    stems = {word[:STEM] for word in known}
    return found >= LEAST_SHARE and all(name[:STEM] in stems for name in _names(value))


def _names(value: str) -> Iterator[str]:
    """Figures, and words that a capital marks as names; the first word is capital anyway."""
    for place, word in enumerate(_WORD.findall(unicodedata.normalize("NFKC", value))):
        name = (place > 0 and word[0].isupper() and len(word) > 1) or any(map(str.isdigit, word))
        if name and word.casefold() not in _COMMON:
            yield word.casefold()


def _tokens(text: str) -> set[str]:
    """Words that say something, cut to their stems; pairs of signs where words are not spaced."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    found: set[str] = set()
    for word in _WORD.findall(plain):
        if _UNSPACED.search(word):
            found.update(word[i : i + 2] for i in range(len(word) - 1))
        elif word not in _COMMON and (len(word) > 1 or word.isdigit()):
            found.add(word[:STEM])
    return found
