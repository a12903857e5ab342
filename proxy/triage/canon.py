"""One message's bytes come in; what triage knows of it, and a digest of what it says, go out."""

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Sequence

import msgspec
import orjson

from proxy.plan.chain import call_ids, read_text
from proxy.triage.signed import read_seals
from proxy.wire import JSON, JSONObject

COMPACTION = re.compile(
    r"\b(?:summari[sz](?:e|ing)|compact(?:ing|ion)?|condens(?:e|ing)|distill?)\b[^.\n]{0,80}"
    r"\b(?:conversation|chat|dialogue|transcript|history|context|session)"
    r"|\bdetailed summary of (?:the|our|this) conversation|\bcontext checkpoint"
    r"|<state_snapshot>",
    re.IGNORECASE,
)
"""How agents ask a model to shorten a conversation; such a request needs all of it."""
COMPACTOR = re.compile(
    r"\b(?:task|job|role|objective|goal)\b[^.\n]{0,40}\b(?:is|are) to\b[^.\n]{0,60}"
    r"\b(?:summar|compact|condens|distill?)\w*\b[^.\n]{0,80}"
    r"\b(?:conversation|chat|dialogue|transcript|history|context|session)"
    r"|\bsummari[sz]es internal chat history"
    r"|\bdetailed summary of (?:the|our|this) conversation|\bcontext checkpoint"
    r"|\A\W*(?:summari[sz]e|compact|condense)\b[^.\n]{0,80}"
    r"\b(?:conversation|chat|dialogue|transcript|history|context|session)"
    r"|<state_snapshot>",
    re.IGNORECASE,
)
"""How a system prompt makes a model one that does so; what only mentions it does not count."""
INJECTED = re.compile(r"<(memory_service|user_memory)>.*?</\1>", re.DOTALL)
"""What memory puts into messages: it may be there on one request and not on the next."""
_COMPACTION_CHARS = 4_000
_DEEP = 200
"""Brackets from which on a message may be deeper than orjson writes, though not than it reads."""
_MEDIA_BYTES = 4_000
"""What one picture or file counts: a thousand tokens are a usual price, whatever its bytes."""
_MEDIA = ("image_url", "input_audio", "file", "video_url", "image", "document", "source")


class Fact(msgspec.Struct, frozen=True, gc=False):
    """What triage knows of one message without its text; `seals` are hashes of its signatures.

    `media` are bytes of pictures and files in it beyond what a model reads of them as tokens.
    """

    role: str
    digest: bytes
    calls: tuple[str, ...] = ()
    answers: str | None = None
    size: int = 0
    content_chars: int = 0
    media: int = 0
    seals: tuple[bytes, ...] = ()
    marked: bool = False
    sealed: bool = False
    compacts: bool = False


def read_fact(raw: bytes) -> Fact | None:
    """The fact of a message; None when it is none, or nested deeper than we could write it."""
    try:
        return _read_fact(raw)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
        return None


def _read_fact(raw: bytes) -> Fact | None:
    message = orjson.loads(raw)
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(role, str):
        return None
    if raw.count(b"[") + raw.count(b"{") > _DEEP:
        orjson.dumps(message)
    content = message.get("content")
    text = read_text(content)
    calls = tuple(call_ids(message)) if role == "assistant" else ()
    answers = message.get("tool_call_id")
    said = INJECTED.sub("", text) if "</" in text else text
    plain = unicodedata.normalize("NFC", said).replace("\r\n", "\n").strip()
    media = _weigh_media(content) if isinstance(content, list) else 0
    own = "system" if role == "developer" else role
    return Fact(
        role=own,
        digest=hashlib.blake2b(_canonical(message, role, plain), digest_size=16).digest(),
        calls=calls,
        answers=answers if isinstance(answers, str) else None,
        size=len(raw) - media,
        content_chars=len(plain),
        media=media,
        seals=read_seals(message) if role == "assistant" else (),
        marked=b'"cache_control"' in raw,
        sealed=b'"encrypted_content"' in raw or b'"compaction"' in raw,
        compacts=_compacts(own, text),
    )


def _canonical(message: JSONObject, role: str, plain: str) -> bytes:
    """What makes two messages the same: role, words, media, calls.

    Ids, reasoning, signatures, annotations, cache marks and outer white space do not count: clients
    drop, renumber and move them between requests.
    """
    content = message.get("content")
    media = list(_media(content)) if isinstance(content, list) else []
    calls = message.get("tool_calls")
    made = [_canonical_call(call) for call in calls] if isinstance(calls, list) else []
    return orjson.dumps([role, plain, media, made], option=orjson.OPT_SORT_KEYS)


def _canonical_call(call: JSON) -> JSON:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        custom = call.get("custom") if isinstance(call, dict) else None
        return custom if isinstance(custom, dict) else None
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            arguments = arguments.strip()
    return [function.get("name"), arguments or {}]


def _compacts(role: str, text: str) -> bool:
    if role == "user":
        return COMPACTION.search(text[-_COMPACTION_CHARS:]) is not None
    return role == "system" and COMPACTOR.search(text[:_COMPACTION_CHARS]) is not None


def media_names(part: JSON) -> list[str]:
    """The members of a content part that hold a picture or a file."""
    return [name for name in _MEDIA if part.get(name)] if isinstance(part, dict) else []


def _weigh_media(parts: Sequence[JSON]) -> int:
    """Bytes of embedded pictures and files that are no tokens."""
    embedded = (part for part in parts if media_names(part))
    return sum(max(0, len(orjson.dumps(part)) - _MEDIA_BYTES) for part in embedded)


def _media(parts: Sequence[JSON]) -> Iterator[JSON]:
    """Pictures and files; a link counts without its query, which is signed anew and expires."""
    for part in parts:
        if not isinstance(part, dict):
            continue
        for name in _MEDIA:
            value = part.get(name)
            if value is None:
                continue
            url = value.get("url") if isinstance(value, dict) else value
            if isinstance(url, str) and not url.startswith("data:"):
                yield [name, url.partition("?")[0]]
            else:
                yield [name, hashlib.blake2b(orjson.dumps(value), digest_size=16).hexdigest()]
