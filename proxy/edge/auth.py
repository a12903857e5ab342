"""A request's credential comes in; who is asking goes out."""

from dataclasses import replace
from typing import Protocol

from proxy.edge.head import KEY_HEADER, Head
from proxy.errors import BadRequest, Unauthorized
from proxy.keys.ring import KeyRing
from proxy.plan.identity import ANONYMOUS, Caller


class Keys(Protocol):
    """The gateway keys that were given out."""

    @property
    def open(self) -> bool:
        """Whether nobody needs a key, because none was ever given out."""

    def find(self, secret: str) -> Caller | None:
        """Whose secret this is; None when it is nobody's."""


class RingKeys:
    """The keys of the key file, as callers."""

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring

    @property
    def open(self) -> bool:
        """Whether the file never held a key."""
        return self._ring.open

    def find(self, secret: str) -> Caller | None:
        """The holder of a key that is in force."""
        key = self._ring.find(secret)
        if key is None:
            return None
        return Caller(key.tenant, key.name, key.user, key.admin, grant=key)


class Door:
    """Lets callers in: everybody when there are no keys, else the holders of one."""

    def __init__(self, keys: Keys | None = None) -> None:
        self._keys = keys

    def admit(self, head: Head) -> Caller:
        """Name the caller, and note whether the credentials are ours, which no upstream may see.

        Raises Unauthorized, or BadRequest when a credential came twice: choosing one is a guess.
        """
        if head.doubled is not None:
            raise BadRequest(f"There is more than one {head.doubled.decode()} header.")
        if self._keys is None or self._keys.open:
            return ANONYMOUS
        if head.secret is None:
            raise Unauthorized(
                "You didn't provide an API key. Send a gateway key in an Authorization header, "
                "as in: Authorization: Bearer YOUR_KEY."
            )
        caller = self._keys.find(head.secret)
        if caller is None:
            raise Unauthorized("The API key is not one of this gateway's, or it was revoked.")
        return replace(caller, used_gateway_key=head.credential != KEY_HEADER)
