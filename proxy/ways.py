"""Settings come in; the ways to an upstream go out, each loaded when it is first needed.

Importing httpx or the stand-in model takes a tenth of the start-up time, and most gateways use
neither.
"""

from collections.abc import Callable, Mapping
from importlib import import_module

from proxy.settings import Settings
from proxy.upstream.transport import Transport, UpstreamRequest, UpstreamResponse

_PLACES: Mapping[str, tuple[str, str]] = {
    "aiohttp": ("proxy.upstream.aiohttp_transport", "AiohttpTransport"),
    "httpx": ("proxy.upstream.httpx_transport", "HttpxTransport"),
    "litellm": ("proxy.upstream.litellm_adapter", "LitellmTransport"),
    "standin": ("proxy.upstream.standin", "StandinTransport"),
}


class LateTransport:
    """A transport that is made by its first request."""

    def __init__(self, make: Callable[[], Transport]) -> None:
        self._make = make
        self._made: Transport | None = None

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        """What the transport behind answers. Raises what it raises."""
        if self._made is None:
            self._made = self._make()
        return await self._made.send(request)

    async def aclose(self) -> None:
        """Closes it, if it was ever needed."""
        if self._made is not None:
            await self._made.aclose()


def load_transport(name: str) -> Transport:
    """A new transport of that name, its module imported now."""
    module, kind = _PLACES[name]
    transport: Transport = getattr(import_module(module), kind)()
    return transport


def make_ways(
    settings: Settings, replaced: Mapping[str, Transport] | None = None
) -> dict[str, Transport]:
    """The ways by kind of target, some `replaced`. The default upstream's is loaded at once."""
    ways: dict[str, Transport] = {
        kind: LateTransport(lambda kind=kind: load_transport(kind))  # type: ignore[misc]  # bound now
        for kind in ("litellm", "standin")
    }
    openai = settings.upstream.transport
    if settings.upstream.base_url is None and not settings.providers:
        ways["openai"] = LateTransport(lambda: load_transport(openai))
    else:
        ways["openai"] = load_transport(openai)
    return {**ways, **(replaced or {})}
