"""What is remembered of a person comes in; a page for them to read and to change it goes out.

The page opens by a signed link, so that people need no key; it has no script and loads nothing.
"""

import base64
import binascii
import hmac
from dataclasses import dataclass
from hashlib import sha256
from html import escape

import orjson

from proxy.memory.change import Snapshot
from proxy.memory.principal import Principal

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem}"
    "table{width:100%;border-collapse:collapse}td{padding:.4rem;border-top:1px solid #8884}"
    "td:last-child{text-align:right}button{font:inherit}:root{color-scheme:light dark}"
)


@dataclass(frozen=True, slots=True)
class Signer:
    """Makes and reads links; without the secret nobody can make one for somebody else."""

    secret: bytes

    def sign(self, whose: Principal, until: float) -> str:
        """A token that opens this person's page until then."""
        told = orjson.dumps([whose.tenant, whose.user, whose.scope, until])
        return base64.urlsafe_b64encode(self._seal(told) + told).decode().rstrip("=")

    def read(self, token: str, now: float) -> Principal | None:
        """Whose page it opens; None for one that is forged, cut or too old."""
        try:
            raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except (binascii.Error, ValueError):
            return None
        seal, told = raw[: sha256().digest_size], raw[sha256().digest_size :]
        if not hmac.compare_digest(seal, self._seal(told)):
            return None
        tenant, user, scope, until = orjson.loads(told)
        return Principal(tenant, user, scope) if now < until else None

    def _seal(self, told: bytes) -> bytes:
        return hmac.digest(self.secret, b"usher memory page\0" + told, "sha256")


def render_page(snapshot: Snapshot, token: str) -> str:
    """The page; everything that was stored is text in it, whatever it looks like."""
    person = snapshot.person
    rows = "".join(
        f"<tr><td>{escape(memory.key.replace('_', ' '))}<td>{escape(memory.value)}"
        f"<td>{_button(token, 'delete', 'Delete', memory.key)}"
        for memory in snapshot.memories
    )
    switch = ("disable", "Switch memory off") if person.enabled else ("enable", "Switch memory on")
    write = ("close", "Remember nothing new") if person.writable else ("open", "Remember again")
    listed = f"<table>{rows}</table>" if rows else "<p>Nothing is remembered about you.</p>"
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport "
        'content="width=device-width"><title>What is remembered about you</title>'
        f"<style>{_STYLE}</style><h1>What is remembered about you</h1>{listed}"
        f"<p>{_button(token, *switch)} {_button(token, *write) if person.enabled else ''}"
        f"<p>{_button(token, 'forget', 'Delete everything for good', asks=True)}"
    )


def _button(token: str, action: str, label: str, key: str = "", *, asks: bool = False) -> str:
    hidden = "".join(
        f'<input type=hidden name={name} value="{escape(value)}">'
        for name, value in (("token", token), ("action", action), ("key", key))
        if value
    )
    sure = "<label><input type=checkbox name=sure required> I am sure</label> " if asks else ""
    return f"<form method=post style=display:inline>{hidden}{sure}<button>{label}</button></form>"
