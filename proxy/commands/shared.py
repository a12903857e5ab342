"""Settings come in; an error goes out when the store that processes share is not there."""

import asyncio

from proxy.errors import ConfigError
from proxy.settings import Settings


def check_shared(settings: Settings) -> None:
    """Raises ConfigError when one is configured and does not answer."""
    if settings.state.url is None:
        return
    try:
        from proxy.state.redis import check_state  # noqa: PLC0415 - an optional extra
    except ImportError:
        from proxy.lasting import MISSING  # noqa: PLC0415 - slow, and nearly never needed

        raise ConfigError(MISSING, param="state.url") from None
    asyncio.run(check_state(settings.state))
