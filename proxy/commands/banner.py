"""Settings and the port in use come in; what a person reads at the start goes out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from proxy.commands.features import describe_features
from proxy.commands.output import mask_password
from proxy.settings import Settings, Upstream
from proxy.wire import JSONObject

STAND_IN = "stand-in model"


@dataclass(frozen=True, slots=True)
class Start:
    """A gateway that listens now."""

    settings: Settings
    port: int
    data: Path
    config: Path | None
    keyed: bool = False
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The base URL for applications; an address for all is reached through loopback."""
        host = self.settings.server.host
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/v1"


def as_data(start: Start) -> JSONObject:
    """The same facts for programs, on one line."""
    upstream = start.settings.upstream.base_url
    return {
        "url": start.url,
        "upstream": mask_password(upstream) if upstream else None,
        "data": str(start.data),
        "config": str(start.config) if start.config else None,
        "keyed": start.keyed,
    }


def as_text(start: Start) -> str:
    """Where Usher listens, whom it asks, what is on, where its data is."""
    settings = start.settings
    tools = f"deferral {settings.deferral.mode}, prediction {settings.prediction.mode}"
    keys = "every caller needs one" if start.keyed else "none: who reaches it may use it"
    any_key = "" if start.keyed or settings.upstream.base_url else "OPENAI_API_KEY=any "
    lines = [
        f"Usher listens on {start.url}",
        f"  upstream  {describe_upstream(settings.upstream)}",
        *(f"  provider  {one.name}: {', '.join(one.models)}" for one in settings.providers),
        f"  tools     {tools}",
        *(f"  {name:<9} {word}" for name, word in describe_features(settings, start.environ)),
        f"  keys      {keys}",
        f"  data      {start.data}",
        f"  config    {start.config or 'none, defaults and environment'}",
        f"  use it    OPENAI_BASE_URL={start.url} {any_key}your-application",
    ]
    return "\n".join(lines)


def describe_upstream(upstream: Upstream) -> str:
    """The upstream and whose key it gets."""
    if upstream.base_url is None:
        return f"{STAND_IN}, offline: set OPENAI_API_KEY, OPENAI_BASE_URL or upstream.base_url"
    key = "the configured key" if upstream.api_key else "the caller's own key"
    return f"{mask_password(upstream.base_url)} with {key}"
