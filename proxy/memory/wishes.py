"""What a user said comes in; whether it is one of two wishes that need more care goes out.

Both are matched by words, narrowly: a miss only means that the usual way is taken.
"""

import re

from proxy.memory.evidence import MOST_REPLY, Heard, own_words
from proxy.memory.gate.pair import read_pair

_KEEP = r"(?:remember|save|store|keep|memori[sz]e|note(?: down)?|record)"
_DECLINES = re.compile(
    rf"\b(?:do not|don['’]?t|never|no need to|please avoid) {_KEEP}(?:ing)? "
    r"(?:this|that|it|any of (?:this|that|it))(?: (?:please|though|anywhere|in (?:your )?memory))?"
    r"\s*(?:[.,;!)]|$)"
    r"|\b(?:merk|speicher\w*|notier\w*) dir (?:das|dies\w*) (?:bitte )?nicht\b"
    r"|\b(?:das|dies\w*) (?:bitte )?nicht (?:merken|speichern|notieren)\b"
    r"|\bne (?:retiens|retenez|mémorise[zs]?|garde[zs]?) (?:pas )?(?:ça|cela|ceci)(?: pas)?\b"
    r"|\bno (?:recuerdes|guardes|memorices|apuntes) (?:esto|eso)\b"
    r"|\bnão (?:guarde|guardes|memorize|lembre) (?:isto|isso|disso)\b"
    r"|\bnon (?:ricordare|salvare|memorizzare) (?:questo|quello|ciò)\b"
    r"|\b(?:onthoud|bewaar) (?:dit|dat) (?:alsjeblieft )?niet\b"
    r"|\bне (?:запоминай|запоминайте|сохраняй|сохраняйте) (?:это|этого)\b"
    r"|\bnie (?:zapamiętuj|zapisuj) (?:tego|to)\b"
    r"|(?:これ|それ|このこと)は(?:覚え|保存し|記憶し)ない(?:で|ように)"
    r"|(?:不要|别|別|不用)(?:记住|記住|保存|记下|記下)(?:这|這|那|它)"
    r"|(?:이건|이거|그건) (?:기억하지|저장하지) ?(?:마|말)",
    re.IGNORECASE,
)
_ANY_WISH = re.compile(
    rf"\b(?:{_KEEP}|forget|delete|merk|vergiss|retiens|recuerda)\b", re.IGNORECASE
)
_ALL = re.compile(
    r"\b(?:everything|all (?:of )?(?:my|your|the|those|these|our) (?:memor|data|fact)\w*|"
    r"all (?:that )?you (?:know|remember|have)|all about me|alles|tout|todo|tudo|tutto|"
    r"wszystko|всё|все|alt|allt|hepsi\w*|her şey\w*|semua\w*)\b"
    r"|(?:すべて|全て|全部|所有|모두|모든|전부|كل شيء|सब कुछ|ทั้งหมด)",
    re.IGNORECASE,
)


def declines(text: str) -> bool:
    """Whether the user does not want this remembered, and asks for nothing else about memory."""
    said = read_pair({"latest": text}).own
    rest, found = _DECLINES.subn(" ", said)
    return found > 0 and not _ANY_WISH.search(rest)


def means_everything(heard: Heard) -> bool:
    """Whether the words, or those that a short answer is about, speak of everything."""
    said = own_words(heard.latest)
    if _ALL.search(said):
        return True
    return len(said) <= MOST_REPLY and any(_ALL.search(own_words(text)) for text in heard.earlier)
