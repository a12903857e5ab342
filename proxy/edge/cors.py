"""The origins that an operator allows come in; the middleware that tells browsers so goes out."""

from collections.abc import Sequence

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

EXPOSED = (
    "x-request-id",
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "x-ratelimit-limit-requests",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-requests",
    "x-ratelimit-reset-tokens",
    "x-usher-tools",
    "x-usher-tokens-saved",
    "x-usher-overhead-ms",
    "x-usher-rounds",
    "x-usher-catalogue",
    "x-usher-classification",
)
"""What scripts of a page may read: a browser hides every other header from them."""


def cors_middleware(origins: Sequence[str]) -> list[Middleware]:
    """Nothing without origins; else preflights are answered without a key, errors included.

    Requested headers are reflected, because SDKs add new ones (`x-stainless-…`) at every release.
    """
    if not origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=list(EXPOSED),
            max_age=600,
        )
    ]
