"""What a judge hears of a conversation comes in; what the memory agent may read goes out."""

import re

from proxy.judge.fused import Said
from proxy.judge.heard import Heard as Listened
from proxy.memory.evidence import MOST_REPLY, Heard, own_words
from proxy.memory.inject import NOTE_TAG, TAG

MOST_CHARS = 8_000
MOST_OFFER = 600
_OURS = re.compile(rf"<({TAG}|{NOTE_TAG})>.*?(?:</\1>|\Z)", re.DOTALL)


def hear(listened: Listened, window: int) -> Heard:
    """The newest message; the answer before it and earlier user messages if it only makes sense so.

    What tools returned, what the application said and our own blocks are never among it.
    """
    latest = clean(listened.latest)[-MOST_CHARS:]
    if len(own_words(latest)) > MOST_REPLY:
        return Heard(latest)
    before = list(listened.conversation[-(window - 1) :]) if window > 1 else []
    offer = clean(before[-1].text) if before and before[-1].role == "assistant" else ""
    earlier = [clean(said.text) for said in before if _is_user(said)]
    return Heard(latest, offer[-MOST_OFFER:], tuple(text for text in earlier if text))


def clean(text: str) -> str:
    """A text without blocks of ours that a client or a model repeats."""
    return _OURS.sub("", text).strip()


def _is_user(said: Said) -> bool:
    return said.role == "user"
