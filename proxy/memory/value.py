"""A key or value that a model wrote comes in; what may be stored, or why not, goes out."""

import re
import unicodedata
from collections.abc import Collection
from hashlib import blake2b
from typing import Literal

from proxy.memory_settings import KEY

Refusal = Literal[
    "bad_key", "invalid_key", "empty", "too_long", "secret", "instruction", "no_evidence"
]

_SECRETS = re.compile(
    r"\b(?:sk|pk|rk)[-_](?:live|test|proj|ant|or|usher)?[-_]?[A-Za-z0-9_-]{16,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\."
    r"|\bAIza[0-9A-Za-z_-]{30,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\b(?:pass(?:word|wort|code|phrase)?|passwd|pwd|contraseña|mot de passe|senha|пароль|密码|"
    r"パスワード|비밀번호|pin|cvv|cvc|tan)\b\s*(?:is|ist|es|est|lautet|:|=|は|是)\s*\S+",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"(?:\d[ -]?){13,19}")
_INSTRUCTION = re.compile(
    r"https?://|www\.|</?[a-z_]+>|\b(?:system|assistant|developer)\s*(?:prompt|message)?\s*:"
    r"|\b(?:ignore|disregard|override)\b.{0,40}\b(?:instruction|previous|above|rule|prompt)"
    r"|\balways\s+(?:recommend|suggest|mention|advertise|promote|link|trust|obey)"
    r"|\b(?:api|function|tool)[_ ]call\b",
    re.IGNORECASE,
)
_MAX_KEY = 64
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn"}
_JOINERS = {"\u200c", "\u200d"}
"""Format characters that words of some scripts, and emoji, are written with."""


class Refused(Exception):
    """A key or value that may not be stored."""

    def __init__(self, reason: Refusal) -> None:
        super().__init__(reason)
        self.reason = reason


def slugify(key: str) -> str:
    """A key in the form that is stored; may be empty.

    One of more than 64 characters ends in a hash of the whole, so that no two long ones meet.
    """
    plain = unicodedata.normalize("NFKD", key.strip().lower())
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    slug = re.sub(r"[^a-z0-9]+", "_", plain).strip("_")
    if len(slug) > _MAX_KEY:
        digest = blake2b(slug.encode(), digest_size=4).hexdigest()
        slug = f"{slug[: _MAX_KEY - len(digest) - 1].rstrip('_')}_{digest}"
    return slug if KEY.fullmatch(slug) else ""


def check_key(key: str, valid: Collection[str]) -> str:
    """The stored form of a key. Raises Refused."""
    slug = slugify(key)
    if not slug or slug == "nothing":
        raise Refused("bad_key")
    if valid and slug not in valid:
        raise Refused("invalid_key")
    return slug


def tidy(text: str) -> str:
    """NFC on one line, without what cannot be seen: it could hide words or turn them around."""
    normal = unicodedata.normalize("NFC", text)
    kept = [
        " " if c in "\n\r\t\v\f\u2028\u2029\u0085" else c
        for i, c in enumerate(normal)
        if c in "\n\r\t\v\f\u0085"
        or unicodedata.category(c) not in _INVISIBLE
        or (c in _JOINERS and 0 < i < len(normal) - 1 and not normal[i - 1].isascii())
    ]
    return " ".join("".join(kept).split())


def check_value(value: str, most_chars: int) -> str:
    """The stored form of a value. Raises Refused."""
    plain = tidy(value)
    if not plain:
        raise Refused("empty")
    if len(plain) > most_chars:
        raise Refused("too_long")
    if has_secret(plain):
        raise Refused("secret")
    if _INSTRUCTION.search(plain):
        raise Refused("instruction")
    return plain


def has_secret(text: str) -> bool:
    """Whether a text holds a key, a password or a payment card's number."""
    if _SECRETS.search(text):
        return True
    return any(_is_card(re.sub(r"\D", "", match.group())) for match in _DIGITS.finditer(text))


def _is_card(digits: str) -> bool:
    """Luhn's check, and a first digit that card networks use."""
    if not 13 <= len(digits) <= 19 or digits[0] not in "3456" or len(set(digits)) == 1:
        return False
    total = 0
    for place, digit in enumerate(map(int, reversed(digits))):
        doubled = digit * 2 if place % 2 else digit
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0
