"""Browsers come in; the console's page, its script and its style go out, none of them secret.

What the page shows it asks of the admin endpoints, with the key that the operator types in.
"""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

FOLDER = Path(__file__).with_name("ui")
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
_SAFE = {
    "cache-control": "no-cache",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def console_routes() -> list[BaseRoute]:
    """The routes under `/usher/ui/`: the files of the package and nothing else."""
    files = sorted(path for path in FOLDER.iterdir() if path.suffix in _TYPES)
    return [
        Route("/usher/ui", _add_slash),
        *(Route(_place(path), _Page(path), methods=["GET"]) for path in files),
    ]


def _place(path: Path) -> str:
    return "/usher/ui/" + ("" if path.name == "index.html" else path.name)


class _Page:
    """One file, read once."""

    def __init__(self, path: Path) -> None:
        self._content = path.read_bytes()
        self._type = f"{_TYPES[path.suffix]}; charset=utf-8"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = Response(self._content, headers=_SAFE | {"content-type": self._type})
        await response(scope, receive, send)


async def _add_slash(_: Request) -> Response:
    """The page's links are relative, so that it also works below a path of a reverse proxy."""
    return RedirectResponse("ui/", 307, headers=_SAFE)
