"""Text in any script goes in; the terms that ranking compares come out."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

MAX_CHARS = 8_000
"""Of a longer message the two ends are read: the request is rarely in the middle of a paste."""
MAX_WORD = 2_000
"""A longer run of letters is data, not a word."""
MIN_SENTENCE = 3
"""Characters of the shortest sentence."""

_RUN = re.compile(r"[^\W_]+(?:['’][a-z]+)?")
_PLAIN_RUN = re.compile(r"[A-Za-z0-9]+(?:'[a-z]+)?")
"""The same for ASCII, in two thirds of the time."""
_PART = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_SENTENCE = re.compile(r"[\s。！？；](?:(?<=[.!?;]\s)\s*|(?<=[\n。！？；])[\n。！？；]*)")
"""White space after a full stop, ends of lines; told by the first character, letters pass fast."""
_STOP_WORDS = """
    a about all also am an and any are as at be been but by can could d did do does for from had has
    have he her hers hey hi him his how i if in into is it its just ll m may me might my of on or
    our please re s shall she should so some t than that the their them then there these they this
    those to us ve was we were what when where which who whom why will with would you your need want
    like
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""`get` is missing on purpose: it tells tools apart."""
_SUFFIXES = (
    ("ations", 4, ""), ("ation", 4, ""), ("ators", 4, ""), ("ator", 4, ""), ("ating", 4, ""),
    ("ated", 4, ""), ("ates", 4, ""), ("ate", 4, ""), ("ions", 4, ""), ("ion", 4, ""),
    ("ments", 5, ""), ("ment", 5, ""), ("ically", 3, "ic"), ("ical", 3, "ic"), ("ly", 4, ""),
    ("ysis", 3, "ys"), ("yses", 3, "ys"), ("yzes", 3, "ys"), ("yzed", 3, "ys"), ("yze", 3, "ys"),
    ("yzing", 3, "ys"), ("iest", 3, "y"), ("ies", 2, "y"), ("ied", 2, "y"), ("sses", 2, "ss"),
    ("ings", 3, ""), ("ing", 3, ""), ("ed", 3, ""), ("es", 3, ""), ("news", 0, "news"),
    ("ss", 1, "ss"), ("us", 1, "us"), ("is", 1, "is"), ("s", 3, ""),
)  # fmt: skip
"""(suffix, letters that must stay, replacement): the first that fits is applied."""
_BY_LETTER = {
    letter: tuple(rule for rule in _SUFFIXES if rule[0][-1] == letter)
    for letter in "abcdefghijklmnopqrstuvwxyz"
}
_DOUBLING = frozenset(("ing", "ings", "ed"))
_UNDOUBLED = frozenset("bdgmnprt")
_VOWELS = frozenset("aeiou")

Word = tuple[str, tuple[str, ...]]
"""A word's stem, and the stems of its parts where its spelling shows parts: `MySQL`, `userId`."""


def words(text: str) -> list[Word]:
    """Split into stemmed words without stop words; unspaced scripts become bigrams."""
    return list(chain.from_iterable(map(_split, _runs(text))))


def terms(text: str) -> list[str]:
    """What an index stores of a text: every word, and the parts of compound ones."""
    return [term for run in _runs(text) for term in _flatten(run)]


def name_terms(name: str) -> list[str]:
    """What an index stores of an identifier: its parts."""
    return [term for whole, parts in words(name) for term in parts or (whole,)]


def _runs(text: str) -> list[str]:
    if len(text) > MAX_CHARS:
        text = f"{text[: MAX_CHARS // 2]} {text[-MAX_CHARS // 2 :]}"
    runs: list[str]
    if text.isascii():
        runs = _PLAIN_RUN.findall(text)
    else:
        runs = _RUN.findall(unicodedata.normalize("NFKC", text))
    return runs


def sentences(text: str, most: int) -> list[str]:
    """Cut a message into its sentences, at most `most`; empty when there is just one."""
    parts = [part for part in cut(text) if len(part) >= MIN_SENTENCE]
    return parts[:most] if len(parts) > 1 else []


def cut(text: str) -> list[str]:
    """Cut the beginning of a message where sentences end; all its words remain, each whole."""
    return _SENTENCE.split(text[:MAX_CHARS])


def squash(name: str) -> str:
    """Reduce a name to what survives any way of writing it: its letters and digits."""
    return "".join(char for char in name.casefold() if char.isalnum())


def share_unspaced(texts: Sequence[str]) -> float:
    """The share of texts that hold writing without spaces, such as Chinese, Korean or Thai."""
    found = sum(_UNSPACED.search(text) is not None for text in texts)
    return found / len(texts) if texts else 0.0


def spaced(name: str) -> str:
    """Write an identifier as words, for readers of prose."""
    return " ".join(part for run in _RUN.findall(name) for part in _PART.findall(run) or [run])


@lru_cache(maxsize=16_384)
def _flatten(run: str) -> tuple[str, ...]:
    return tuple(term for whole, parts in _split(run) for term in (whole, *parts))


@lru_cache(maxsize=16_384)
def _split(run: str) -> tuple[Word, ...]:
    """Words of one run of letters and digits."""
    if len(run) > MAX_WORD:
        return ()
    run = run.partition("'")[0].partition("’")[0]
    if run.isascii():
        return _split_ascii(run)
    found: list[Word] = []
    end = 0
    for match in _UNSPACED.finditer(run):
        found += _split_other(run[end : match.start()])
        found += [(bigram, ()) for bigram in _bigrams(match[0])]
        end = match.end()
    return (*found, *_split_other(run[end:]))


def _split_ascii(run: str) -> tuple[Word, ...]:
    parts = [run] if run.islower() or run.isdigit() else _PART.findall(run)
    lowered = [_singular(part).lower() for part in parts]
    if len(lowered) == 1:
        return () if lowered[0] in STOP_WORDS else ((stem(lowered[0]), ()),)
    kept = tuple(stem(part) for part in lowered if part not in STOP_WORDS)
    return ((stem("".join(lowered)), kept),)


def _singular(part: str) -> str:
    """Cut the plural of an acronym: `VMs`."""
    return part[:-1] if part[-1] == "s" and part[:-1].isupper() and len(part) > 2 else part


def _split_other(text: str) -> tuple[Word, ...]:
    if not text:
        return ()
    return _split_ascii(text) if text.isascii() else ((stem(text.casefold()), ()),)


def _bigrams(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Cut English endings so that forms of one word meet; not meant to be readable."""
    if len(word) < 4:
        return word
    for suffix, least, replacement in _BY_LETTER.get(word[-1], ()):
        if word.endswith(suffix) and len(word) - len(suffix) >= least:
            return _tidy(word[: len(word) - len(suffix)] + replacement, suffix)
    return _tidy(word, "")


def _tidy(root: str, suffix: str) -> str:
    """Undo what a cut ending left behind: `plann(ing)` → `plan`, `queri(es)` → `query`."""
    if suffix in _DOUBLING and root[-1] == root[-2] and root[-1] in _UNDOUBLED:
        return root[:-1]
    if root[-1] == "e" and len(root) > 3:
        return root[:-1]
    if root[-1] == "y" and len(root) > 2 and root[-2] not in _VOWELS:
        return f"{root[:-1]}i"
    return root
