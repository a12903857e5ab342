"""What each hint of a ranking is worth; `docs/ranking.md` says what leaving one out costs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signals:
    """Weights of the lexical ranker, set on the development sets; `NEUTRAL` has each one's off."""

    name_cover: float = 0.25
    """How much a tool gains when the query says its whole name."""
    pair: float = 0.1
    """Gain, per rarity, of two neighbouring words that stay neighbours."""
    verb: float = 0.15
    """Gain or loss of a tool whose verb (dis)agrees with the request's."""
    verb_word: float = 0.55
    """Weight of a verb as a word, since its kind is compared besides."""
    weak: float = 0.6
    """Weight of words that every request uses."""
    early: float = 0.3
    """Extra weight of the first word of a request, fading: what is asked for stands first."""
    joined: float = 0.7
    """Weight of `web app` read as `webapp`."""
    split: float = 0.8
    """Weight of `keyvault` read as `key vault`."""
    guessed: float = 0.6
    """Weight of a mended typo."""
    acronym: float = 0.8
    """Weight of initials."""
    glossary: float = 0.3
    """Weight of characters that are left when a foreign question's known words are translated."""
    sentences: int = 10
    """So many sentences of a message count by themselves as well."""
    boilerplate: float = 0.1
    """Parameters that more than this share of the tools take are left out."""
    parameters: bool = True
    """Whether parameters are read at all."""


NEUTRAL = Signals(
    name_cover=0.0,
    pair=0.0,
    verb=0.0,
    verb_word=1.0,
    weak=1.0,
    early=0.0,
    joined=0.0,
    split=0.0,
    guessed=0.0,
    acronym=0.0,
    glossary=0.0,
    sentences=0,
    boilerplate=1.0,
    parameters=False,
)
