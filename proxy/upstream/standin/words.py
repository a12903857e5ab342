"""Text goes in; the words that say what is wanted, each with a weight, come out."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType

from proxy.upstream.standin.glossary import UNSPACED, WORDS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SYNONYMS = """
get=get,list,show,display,retrieve,find,fetch,read,view,see,describe,enumerate,what,which,tell,detail,check,lookup
create=create,add,make,new,provision,generate,issue,register,build,deploy
delete=delete,remove,destroy,drop,erase,unregister
update=update,change,modify,set,edit,configure,resize,rename,adjust,lock,unlock
send=send,publish,post,notify
query=query,search,run,execute
"""
VERBS: Mapping[str, str] = MappingProxyType(
    {
        word: verb
        for verb, words in (line.split("=") for line in _SYNONYMS.split())
        for word in words.split(",")
    }
)
"""Words for doing something, and the one word that stands for all of them."""
SHORT: Mapping[str, str] = MappingProxyType(
    {
        "containerregistry": "acr",
        "database": "db",
        "keyvalue": "kv",
        "kubernetes": "aks",
        "scaleset": "vmss",
        "virtualmachine": "vm",
    }
)
"""What tools call a thing for short, by its long name."""
ACTIONS = frozenset(VERBS.values())
COMMON = _words("""
account azure detail group instance microsoft resource server service specific subscription
""")
"""Words that say where rather than what; they weigh little."""
_STOP = _words("""
a about all also an and any are as at be by can could did do does for from give has have how i if in
into is it its just like may me my named need no not now of off on or our please so some than that
the their them then there these they this those to up us use using want was we were who will with
would you your
""")
_PLACE = re.compile(
    r"\b(?:about|at|by|for|from|in|into|named|of|on|to|under|using|with|within)\b", re.IGNORECASE
)
"""What follows one of these words says where or with what, so it weighs less."""
_WORD = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])")
_UNSPACED_RUN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")
_LONGEST = max(map(len, UNSPACED))
TAIL_WEIGHT, ACTION_WEIGHT, COMMON_WEIGHT = 0.6, 0.7, 0.3


def weigh(text: str) -> dict[str, float]:
    """Words and joined neighbours of a request, weighted by what they tell about its purpose."""
    parts = _PLACE.split(translate(text), maxsplit=1)
    weights: dict[str, float] = {}
    for part, factor in zip(parts, (1.0, TAIL_WEIGHT), strict=False):
        for word in sorted(joined(content(part))):
            weights.setdefault(word, factor * weight(word))
    return weights


def weight(word: str) -> float:
    """How much a word tells about a purpose, whatever the other tools are called."""
    return (COMMON_WEIGHT if word in COMMON else 1.0) * (ACTION_WEIGHT if word in ACTIONS else 1.0)


def content(text: str) -> list[str]:
    """The stemmed words of a text without its function words."""
    return [word for word in split(text) if word not in _STOP]


def split(text: str) -> list[str]:
    """Lower-case words; camelCase, snake_case and digits are taken apart, plurals cut."""
    return [_singular(word.lower()) for word in _WORD.findall(_CAMEL.sub(" ", text))]


def joined(words: list[str]) -> set[str]:
    """The words, actions under one name, and neighbours as one word: `key vault` is `keyvault`."""
    pairs = pairwise(words)
    neighbours = {first + second for first, second in pairs if not {first, second} & VERBS.keys()}
    return named([*words, *neighbours])


def named(words: Iterable[str]) -> set[str]:
    """The words with every action under its one name, and things under their short one."""
    return {VERBS.get(word) or SHORT.get(word, word) for word in words}


def translate(text: str) -> str:
    """Replace the words the glossary knows by English ones; all others stay."""
    spaced = _UNSPACED_RUN.sub(lambda match: f" {' '.join(_segment(match.group()))} ", text)
    return " ".join(WORDS.get(word.lower().strip(".,!?;:¿¡"), word) for word in spaced.split())


def _segment(run: str) -> Iterator[str]:
    start = 0
    while start < len(run):
        sizes = range(min(_LONGEST, len(run) - start), 0, -1)
        size = next((size for size in sizes if run[start : start + size] in UNSPACED), 0)
        if size:
            yield UNSPACED[run[start : start + size]]
        start += size or 1


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word
