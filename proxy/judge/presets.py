"""The decision endpoints of the market as one table; what an operator set wins over its row."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from proxy.errors import ConfigError
from proxy.judge.confidence import HALF_UNIT
from proxy.judge_settings import DecisionProvider

Dialect = Literal["systemone", "openai"]

ANY_ID = re.compile(r".+", re.DOTALL)
SAFE_ID = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_PATHS: Mapping[str, str] = {"systemone": "/systemone", "openai": "/decisions"}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server takes; ids that do not match are replaced on the wire."""

    questions: int = 400
    options: int = 255
    levels: int = 10
    state_chars: int = 96_000
    ids: re.Pattern[str] = ANY_ID


@dataclass(frozen=True, slots=True)
class Profile:
    """One decision endpoint, complete."""

    dialect: Dialect = "systemone"
    url: str | None = None
    model: str | None = None
    request_key: str | None = None
    response_key: str | None = None
    key_env: str = "CLASSIFIER_API_KEY"
    needs_key: bool = True
    must_succeed: bool = False
    """Cloudflare's envelope says `success`; anything but true is a failure."""
    both_sides: bool = False
    half_unit: float = HALF_UNIT
    limits: Limits = field(default_factory=Limits)


_CLOUDFLARE = "https://api.cloudflare.com/client/v4/accounts/{account}/ai/run"

PRESETS: Mapping[str, Profile] = {
    "systemone": Profile(model="jev-latest", needs_key=False, limits=Limits(ids=SAFE_ID)),
    "typesafe": Profile(
        url="https://api.typesafe.ai/v1/systemone", model="jev-latest", key_env="TYPESAFE_API_KEY"
    ),
    "openrouter": Profile(
        url="https://openrouter.ai/api/alpha/decisions",
        model="~typesafe/jev-latest",
        key_env="OPENROUTER_API_KEY",
        both_sides=True,
    ),
    "cloudflare-clef": Profile(
        url=_CLOUDFLARE + "/@cf/cloudflare/{model}",
        model="clef",
        response_key="result",
        key_env="CLOUDFLARE_API_TOKEN",
        must_succeed=True,
        limits=Limits(questions=64, state_chars=6_000, ids=SAFE_ID),
    ),
    "cloudflare-jev": Profile(
        url=_CLOUDFLARE,
        model="typesafe/jev",
        request_key="input",
        response_key="result",
        key_env="CLOUDFLARE_API_TOKEN",
    ),
    "openai-decisions": Profile(
        dialect="openai",
        url="https://api.openai.com/v1/decisions",
        model="gpt-6-luna",
        key_env="OPENAI_API_KEY",
        limits=Limits(ids=re.compile(r"[A-Za-z0-9_-]{1,64}")),
    ),
}

_OTHER_KEYS: Mapping[str, tuple[str, ...]] = {
    "OPENROUTER_API_KEY": ("OPENROUTER_KEY",),
    "CLOUDFLARE_API_TOKEN": ("CLOUDFLARE_API_KEY",),
}
"""Names that LibreChat and others use for the same key."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A profile with its address and key filled in."""

    profile: Profile
    url: str
    model: str
    api_key: str | None


def resolve(name: str, own: DecisionProvider, environ: Mapping[str, str]) -> Resolved | None:
    """Lay an operator's keys over a preset; None when the key that it needs is missing.

    Raises ConfigError when there is no address.
    """
    profile = PRESETS[own.preset]
    dialect: Dialect = own.dialect or profile.dialect
    profile = Profile(
        dialect=dialect,
        url=own.base_url or profile.url,
        model=own.model or profile.model,
        request_key=own.request_key or profile.request_key,
        response_key=own.response_key or profile.response_key,
        key_env=own.api_key_env or profile.key_env,
        needs_key=profile.needs_key,
        must_succeed=profile.must_succeed,
        both_sides=profile.both_sides,
        half_unit=profile.half_unit,
        limits=profile.limits,
    )
    key = own.api_key.get_secret_value() if own.api_key else _find_key(profile.key_env, environ)
    if key is None and (profile.needs_key or own.api_key_env):
        return None
    model = profile.model or "jev-latest"
    return Resolved(profile, _address(name, profile, own.account, environ), model, key)


def _address(name: str, profile: Profile, account: str | None, environ: Mapping[str, str]) -> str:
    if profile.url is None:
        raise ConfigError(f"classification.providers.{name}.base_url is required")
    url = profile.url
    if "{account}" in url:
        account = account or environ.get("CLOUDFLARE_ACCOUNT_ID")
        if not account:
            raise ConfigError(
                f"classification.providers.{name}.account is required (or CLOUDFLARE_ACCOUNT_ID)"
            )
        url = url.replace("{account}", account).replace("{model}", profile.model or "clef")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigError(f"classification.providers.{name}.base_url is no http URL")
    return complete_path(url, profile.dialect)


def complete_path(url: str, dialect: Dialect) -> str:
    """`http://host` and `http://host/v1` get the path of their dialect; longer ones have theirs."""
    path = urlsplit(url).path.rstrip("/")
    if path == "":
        return url.rstrip("/") + "/v1" + _PATHS[dialect]
    return url.rstrip("/") + _PATHS[dialect] if path.endswith("/v1") else url


def _find_key(name: str, environ: Mapping[str, str]) -> str | None:
    for candidate in (name, *_OTHER_KEYS.get(name, ())):
        if environ.get(candidate):
            return environ[candidate]
    return None
