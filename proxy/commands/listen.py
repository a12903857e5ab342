"""An address comes in; a socket that listens there goes out."""

import socket

from proxy.errors import ConfigError
from proxy.settings import Server

BACKLOG = 2048


def listen(server: Server) -> socket.socket:
    """The socket to accept from. Raises ConfigError when it can't be had."""
    host, port = server.host.strip("[]"), server.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"server: cannot listen on {host}:{port}: {reason}") from None
