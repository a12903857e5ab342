"""The store that processes share is asked before anything depends on it."""

import pytest

from proxy.commands.shared import check_shared
from proxy.errors import ConfigError
from proxy.settings import Settings
from tests.fakes.redisserver import RedisServer


def test_none_is_fine() -> None:
    """Nothing is shared, so nothing is asked."""
    check_shared(Settings())


def test_one_that_answers_and_one_that_does_not(redis_server: RedisServer) -> None:
    """The error names the setting."""
    settings = Settings.model_validate({"state": {"url": redis_server.url}})
    check_shared(settings)
    redis_server.stop()
    with pytest.raises(ConfigError, match=r"^state\.url: 127\.0\.0\.1: "):
        check_shared(settings)
