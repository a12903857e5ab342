"""A signed link comes in from a browser; the person's own page about their memories goes out."""

import time
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from proxy.edge.asked import Asked
from proxy.edge.endpoint import Endpoint
from proxy.edge.exchange import Edge
from proxy.edge.memory import MemoryApi, read_body, reply_json
from proxy.errors import BadRequest, Unavailable
from proxy.ledger.store import Ledger
from proxy.memory.change import Delete, Origin
from proxy.memory.near import Remembered
from proxy.memory.page import Signer, render_page
from proxy.memory.principal import Principal
from proxy.plan.exchange import Reply
from proxy.settings import Settings

if TYPE_CHECKING:  # SQLAlchemy: 0.3 s and 25 MB, only where memory is on
    from proxy.memory.bank import Bank

PATH = "/usher/memory/page"
MOST_HOURS = 24 * 30
MOST_BYTES = 16_384
_SAFE = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_CHOICES = {
    "enable": {"enabled": True},
    "disable": {"enabled": False},
    "open": {"writable": True},
    "close": {"writable": False},
}


class Pages:
    """Answers browsers, which have a link and no key."""

    def __init__(self, bank: "Bank", signer: Signer) -> None:
        self._bank = bank
        self._signer = signer

    async def show(self, request: Request) -> Response:
        """The page."""
        token = request.query_params.get("token", "")
        whose = self._signer.read(token, time.time())
        if whose is None:
            return _refuse("This link is not valid, or not any more.", 403)
        try:
            snapshot = await self._bank.read(whose)
        except Unavailable:
            return _refuse("Memory cannot be reached. Please try again later.", 503)
        return HTMLResponse(render_page(snapshot, token), headers=_SAFE)

    async def act(self, request: Request) -> Response:
        """One button; then the page again."""
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BYTES:
                return _refuse("This form is too long.", 413)
        form = dict(parse_qsl(body.decode("utf-8", "replace")))
        token = form.get("token", "")
        whose = self._signer.read(token, time.time())
        if whose is None:
            return _refuse("This link is not valid, or not any more.", 403)
        try:
            await self._do(whose, form)
        except Unavailable:
            return _refuse("Memory cannot be reached. Please try again later.", 503)
        return RedirectResponse(f"{PATH}?token={token}", 303, headers=_SAFE)

    async def _do(self, whose: Principal, form: dict[str, str]) -> None:
        action = form.get("action", "")
        if action in _CHOICES:
            await self._bank.choose(whose, _CHOICES[action])
        elif action == "delete":
            await self._bank.change(whose, [Delete(form.get("key", ""))], Origin())
        elif action == "forget" and form.get("sure"):
            await self._bank.forget(whose, Origin())


def page_routes(
    edge: Edge, remembered: Remembered, settings: Settings, ledger: Ledger
) -> list[BaseRoute]:
    """The page and the route that hands out links to it; nothing without a secret."""
    secret = settings.memory.page_secret
    if secret is None:
        return []
    signer = Signer(secret.get_secret_value().encode())
    api, pages = MemoryApi(remembered, settings, ledger), Pages(remembered.bank, signer)

    async def link(asked: Asked) -> Reply:
        hours = read_body(asked).get("hours", 24)
        if isinstance(hours, bool) or not isinstance(hours, int | float):
            raise BadRequest("hours: a number.", param="hours")
        if not 0 < hours <= MOST_HOURS:
            raise BadRequest(f"hours: at most {MOST_HOURS}.", param="hours")
        until = time.time() + hours * 3600
        token = signer.sign(api.person(asked), until)
        return reply_json({"url": f"{PATH}?token={token}", "expires_at": until})

    return [
        Route("/usher/memory/link", Endpoint(edge, link), methods=["POST"]),
        Route(PATH, pages.show, methods=["GET"]),
        Route(PATH, pages.act, methods=["POST"]),
    ]


def _refuse(text: str, status: int) -> Response:
    page = f"<!doctype html><meta charset=utf-8><title>Memory</title><p>{text}"
    return HTMLResponse(page, status, headers=_SAFE)
