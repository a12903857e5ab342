"""A request's credential comes in; who is asking goes out."""

from dataclasses import replace
from typing import Protocol

from proxy.edge.head import KEY_HEADER, Head
from proxy.errors import BadRequest, Unauthorized, Unavailable
from proxy.keys.refusal import LimitsUnavailable
from proxy.keys.ring import KeyRing
from proxy.plan.identity import ANONYMOUS, Caller

RETRY_SECONDS = 30.0
"""An operator has to act first."""


class KeysUnavailable(Unavailable):
    """The key file cannot be read, and no key was known before."""

    code = "keys_unavailable"


class Keys(Protocol):
    """The gateway keys that were given out."""

    @property
    def open(self) -> bool:
        """Whether nobody needs a key, because none was ever given out."""

    def check(self) -> None:
        """Raises Unavailable while nobody can be told from anybody."""

    def find(self, secret: str) -> Caller | None:
        """Whose secret this is; None when it is nobody's.

        Raises Unavailable for a key that cannot be kept to its limits.
        """


class RingKeys:
    """The keys of the key file, as callers."""

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring

    @property
    def open(self) -> bool:
        """Whether the file never held a key."""
        return self._ring.open

    def check(self) -> None:
        """Without a readable file the gateway is closed, and neither open nor keyed."""
        if self._ring.shut:
            raise KeysUnavailable(
                "There are gateway keys and their file cannot be read; the log says why.",
                retry_after=RETRY_SECONDS,
            )

    def find(self, secret: str) -> Caller | None:
        """The holder of a key that is in force."""
        key = self._ring.find(secret)
        if key is None:
            return None
        if not self._ring.holds(key):
            raise LimitsUnavailable(
                f"The limits of the key {key.name} cannot hold over several processes without "
                "state.url, so it lets nobody in.",
                retry_after=RETRY_SECONDS,
            )
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
        self._keys.check()
        if head.secret is None:
            raise Unauthorized(
                "You didn't provide an API key. Send a gateway key in an Authorization header, "
                "as in: Authorization: Bearer YOUR_KEY."
            )
        caller = self._keys.find(head.secret)
        if caller is None:
            raise Unauthorized("The API key is not one of this gateway's, or it was revoked.")
        return replace(caller, used_gateway_key=head.credential != KEY_HEADER)
