"""Text in any script goes in; the terms that ranking compares come out."""

import re
import unicodedata

MAX_CHARS = 8_000
"""Of a longer message the two ends are read: the request is rarely in the middle of a paste."""

_RUN = re.compile(r"[^\W_]+(?:['’][a-z]+)?")
_ASCII = re.compile(r"[\x00-\x7f]*")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|[\n。！？；]+")
_STOP_WORDS = """
    a about all also am an and any are as at be been but by can could d did do does for from
    had has have he her hers hey hi him his how i if in into is it its just ll m may me might
    my of on or our please re s shall she should so some t than that the their them then there
    these they this those to us ve was we were what when where which who whom why will with
    would you your need want like
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
    ("ss", 1, "ss"), ("us", 1, "us"), ("is", 1, "is"), ("s", 3, ""), ("", 0, ""),
)  # fmt: skip
"""(suffix, letters that must stay, replacement): the first that fits is applied."""
_DOUBLING = frozenset(("ing", "ings", "ed"))
_UNDOUBLED = frozenset("bdgmnprt")
_VOWELS = frozenset("aeiou")


def terms(text: str) -> list[str]:
    """Split into lower-case stems, without stop words; unspaced scripts become bigrams."""
    if len(text) > MAX_CHARS:
        text = f"{text[: MAX_CHARS // 2]} {text[-MAX_CHARS // 2 :]}"
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    found: list[str] = []
    for run in _RUN.findall(text):
        if run.isascii():
            found += _ascii_terms(run)
        else:
            found += _foreign_terms(run)
    return found


def words(text: str) -> list[str]:
    """Split into lower-case words as written: nothing stemmed, nothing left out."""
    split = (part for run in _RUN.findall(text) for part in _PART.findall(run) or [run])
    return [part.lower() for part in split]


def sentences(text: str, most: int) -> list[str]:
    """Cut a message into its sentences, at most `most`; empty when there is just one."""
    parts = [part for part in _SENTENCE.split(text[:MAX_CHARS]) if len(part) > 2]
    return parts[:most] if len(parts) > 1 else []


def squash(name: str) -> str:
    """Reduce a name to what survives any way of writing it: its letters and digits."""
    return "".join(char for char in name.casefold() if char.isalnum())


def _ascii_terms(run: str) -> list[str]:
    run = run.partition("'")[0]
    parts = [run] if run.islower() or run.isdigit() else _PART.findall(run)
    lowered = (part.lower() for part in parts)
    return [stem(word) for word in lowered if word not in STOP_WORDS]


def _foreign_terms(run: str) -> list[str]:
    found: list[str] = []
    end = 0
    for match in _UNSPACED.finditer(run):
        found += _word(run[end : match.start()])
        found += _bigrams(match[0])
        end = match.end()
    return found + _word(run[end:])


def _word(text: str) -> list[str]:
    if not text:
        return []
    return _ascii_terms(text) if text.isascii() else [stem(text.casefold())]


def _bigrams(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


def stem(word: str) -> str:
    """Cut English endings so that forms of one word meet; not meant to be readable."""
    if len(word) < 4:
        return word
    suffix, replacement = next(
        (suffix, replacement)
        for suffix, least, replacement in _SUFFIXES
        if word.endswith(suffix) and len(word) - len(suffix) >= least
    )
    root = word[: len(word) - len(suffix)] + replacement
    if suffix in _DOUBLING and root[-1] == root[-2] and root[-1] in _UNDOUBLED:
        return root[:-1]
    if root[-1] == "e" and len(root) > 3:
        return root[:-1]
    if root[-1] == "y" and len(root) > 2 and root[-2] not in _VOWELS:
        return root[:-1] + "i"
    return root
