"""What a user said and what a model would store come in; whether one backs the other goes out.

A model can be talked into a memory by a page, a tool result or its own invention. None of that is
here: the evidence is the user's own words, and an offer only where the user has accepted it.
"""

import re
import unicodedata
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
    """Whether the user's words hold something of the value that could only come from them."""
    said = own_words(heard.latest)
    wanted = _tokens(value)
    if not wanted:
        return False
    if wanted & _tokens(said):
        return True
    if len(said) > MOST_REPLY:
        return False
    around = " ".join([heard.offer, *map(own_words, heard.earlier)])
    return bool(wanted & _tokens(around))


def _tokens(text: str) -> set[str]:
    """Words that say something, cut to their stems' length; pairs where words are not spaced."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    found: set[str] = set()
    for word in _WORD.findall(plain):
        if _UNSPACED.search(word):
            found.update(word[i : i + 2] for i in range(len(word) - 1))
        elif word not in _COMMON and (len(word) > 1 or word.isdigit()):
            found.add(word[:5])
    return found
