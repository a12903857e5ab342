"""Who is asking: the facts that authentication found out about a request."""

from dataclasses import dataclass

from proxy.keys.key import GatewayKey


@dataclass(frozen=True, slots=True)
class Caller:
    """The holder of a gateway key, or the open door's anonymous one.

    `tenant` separates everything that is stored; `key` is the key's public name, never its secret.
    """

    tenant: str = "default"
    key: str = "open"
    user: str | None = None
    admin: bool = False
    used_gateway_key: bool = False
    """True when the request's own credential was a gateway key, which must not go upstream."""
    grant: GatewayKey | None = None
    """What the key allows and limits; None at the open door, which knows no keys."""


ANONYMOUS = Caller()
