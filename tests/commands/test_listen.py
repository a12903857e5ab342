"""A socket, or the reason why there is none."""

import socket

import pytest

from proxy.commands.listen import listen
from proxy.errors import ConfigError
from proxy.settings import Server


def test_a_free_port() -> None:
    """Port 0 picks one."""
    with listen(Server(port=0)) as listener:
        assert listener.getsockname()[1] > 0


def test_a_port_that_is_taken() -> None:
    """Is named with the reason."""
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        pytest.raises(
            ConfigError, match=r"cannot listen on 127\.0\.0\.1:\d+: address already in use"
        ),
    ):
        listen(Server(port=other.getsockname()[1]))
