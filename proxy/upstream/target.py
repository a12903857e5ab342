"""Which upstream answers: settings and a model name go in, a target and its URLs come out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import Final, Literal
from urllib.parse import quote, urlsplit

from proxy.errors import ConfigError, Forbidden
from proxy.settings import Provider, Settings

Kind = Literal["openai", "litellm", "standin"]

STANDIN_HOST: Final = "standin"
LITELLM_HOST: Final = "litellm"
"""Stands where a litellm provider has no address of its own."""

AZURE_HOSTS: Final = (
    ".openai.azure.com",
    ".cognitiveservices.azure.com",
    ".services.ai.azure.com",
    ".openai.azure.us",
    ".openai.azure.cn",
)


@dataclass(frozen=True, slots=True)
class Target:
    """An upstream; `model` replaces the client's model name when it is set."""

    provider: str
    kind: Kind
    base_url: str
    api_key: str | None
    model: str | None
    ask_usage: bool

    @property
    def azure(self) -> bool:
        """Whether it is an Azure resource, which has paths and a key header of its own."""
        return _is_azure(self.base_url)


class Targets:
    """The configured upstreams, checked and prepared once.

    Raises ConfigError for a base URL that cannot be used and for two providers of one name.
    """

    def __init__(self, settings: Settings) -> None:
        self._routes = [
            (re.compile("|".join(map(translate, provider.models))), _provider_target(provider))
            for provider in settings.providers
        ]
        self.default = _default_target(settings)
        names = [target.provider for _, target in self._routes]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(f"two providers are named {twice!r}")

    @property
    def names(self) -> Sequence[str]:
        """What a key can be bound to."""
        return [self.default.provider, *(target.provider for _, target in self._routes)]

    @property
    def is_trial(self) -> bool:
        """Whether the offline stand-in answers what no provider is for."""
        return self.default.kind == "standin"

    def named(self, provider: str) -> Target:
        """The upstream of that name. Raises Forbidden when there is none: a key is bound to it."""
        targets = (self.default, *(target for _, target in self._routes))
        found = next((target for target in targets if target.provider == provider), None)
        if found is None:
            raise Forbidden(f"The key's upstream {provider} is not configured.")
        return found

    def choose(self, model: str) -> Target:
        """The first provider with a name or glob for the model, else the default upstream."""
        for pattern, target in self._routes:
            if pattern.match(model):
                return target
        return self.default


@lru_cache(maxsize=256)
def _is_azure(base_url: str) -> bool:
    return (urlsplit(base_url).hostname or "").endswith(AZURE_HOSTS)


def choose_target(settings: Settings, model: str) -> Target:
    """One choice without keeping the prepared `Targets`."""
    return Targets(settings).choose(model)


@lru_cache(maxsize=1024)
def url_for(target: Target, path: str, query: str = "", deployment: str | None = None) -> str:
    """The upstream's URL of an API resource, its path and query as the client wrote them.

    `path` is percent-encoded, with its `/v1` or without. The base URL is the one that an OpenAI
    SDK would be given: `/v1` is in it where the upstream has one. A query of the base URL, such
    as Azure's `api-version`, fills in what the client's lacks. `deployment` is the model where
    Azure's SDK puts it, in the path.
    """
    base, _, own_query = target.base_url.partition("?")
    base = base.rstrip("/")
    path = "/" + path.lstrip("/")
    if target.azure:
        base = _azure_base(base, deployment)
    elif deployment is not None:
        query = _without(query, "api-version=")
    if path.startswith("/v1/"):
        path = "/" + path[4:].lstrip("/")
    if own_query:
        taken = {part.partition("=")[0] for part in query.split("&")}
        missing = [part for part in own_query.split("&") if part.partition("=")[0] not in taken]
        query = "&".join([*missing, query] if query else missing)
    return f"{base}{path}?{query}" if query else f"{base}{path}"


def _azure_base(base: str, deployment: str | None) -> str:
    """A resource's bare address gets the classic path of a deployment, else the newer `/v1`."""
    root = base.removesuffix("/openai")
    if urlsplit(root).path:
        return base
    if deployment is None:
        return f"{root}/openai/v1"
    return f"{root}/openai/deployments/{quote(deployment, safe='')}"


def _without(query: str, prefix: str) -> str:
    return "&".join(part for part in query.split("&") if not part.startswith(prefix))


def _default_target(settings: Settings) -> Target:
    upstream = settings.upstream
    if upstream.base_url is None:
        base_url = f"http://{STANDIN_HOST}/v1"
        return Target("standin", "standin", base_url, None, None, upstream.ask_usage)
    key = upstream.api_key.get_secret_value() if upstream.api_key else None
    base_url = _checked(upstream.base_url, "upstream.base_url")
    return Target("default", "openai", base_url, key, None, upstream.ask_usage)


def _provider_target(provider: Provider) -> Target:
    where = f"base_url of provider {provider.name}"
    if provider.base_url is not None:
        base_url = _checked(provider.base_url, where)
    elif provider.kind == "openai":
        raise ConfigError(f"{where} is missing")
    else:
        base_url = f"http://{LITELLM_HOST if provider.kind == 'litellm' else STANDIN_HOST}/v1"
    return Target(
        provider=provider.name,
        kind=provider.kind,
        base_url=base_url,
        api_key=provider.api_key.get_secret_value() if provider.api_key else None,
        model=provider.model,
        ask_usage=provider.ask_usage,
    )


def _checked(url: str, where: str) -> str:
    """The URL with single slashes in its path; ConfigError says what is wrong with it."""
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0 and parts.scheme in {"http", "https"}
    except ValueError:
        raise ConfigError(f"{where} is not a URL") from None
    if not usable:
        raise ConfigError(f"{where} is not an http or https URL")
    if parts.username is not None:
        raise ConfigError(f"{where}: put the key into api_key, not into the URL")
    if parts.fragment:
        raise ConfigError(f"{where}: a URL for requests has no fragment")
    path = re.sub(r"/{2,}", "/", parts.path)
    return parts._replace(path=path).geturl()
