"""A request's path comes in, as sent; which API resource it means goes out, for any base URL."""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from proxy.errors import BadRequest

CHAT_PATH = "/chat/completions"

# The resources of OpenAI's API description, and Anthropic's: clients whose base URL has no `/v1`
# ask for these at the top.
RESOURCES = frozenset({
    "assistants", "audio", "batches", "chat", "chatkit", "completions", "containers",
    "content_provenance_checks", "conversations", "embeddings", "evals", "files", "fine_tuning",
    "images", "messages", "models", "moderations", "organization", "projects", "realtime",
    "responses", "skills", "threads", "uploads", "vector_stores", "videos",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """A resource of the API: its path below `/v1`, percent-encoded as sent."""

    path: str
    chat: bool = False
    deployment: str | None = None
    """The model, where Azure's SDK puts it: into the path."""


_DOTS = re.compile(r"(?i)(?:^|/)(?:\.|%2e){1,2}(?:/|$)")
_CHAT_REST = re.compile(r"chat/+completions/*")
_CHAT = Place(CHAT_PATH, chat=True)
USUAL = {b"/v1/chat/completions": _CHAT, b"/chat/completions": _CHAT}
"""The paths of nearly all requests."""


def locate(raw_path: bytes) -> Place | None:
    """Find the API resource of a path; None when it is none of the API.

    Slashes may be doubled, and the prefix may be `/v1`, Azure's `/openai…` or missing.
    Raises BadRequest for dot segments: joined to the upstream's base URL they would leave it.
    """
    return USUAL.get(raw_path) or _locate(raw_path.decode("latin-1").lstrip("/"))


def _locate(path: str) -> Place | None:
    head, rest = _split(path)
    deployment = None
    if head == "openai":
        head, after = _split(rest)
        if head == "deployments":
            if rest.startswith("deployments//"):
                raise BadRequest("The URL path names no deployment.")
            name, rest = _split(after)
            if _DOTS.fullmatch(name):
                raise BadRequest("The URL path must not contain dot segments.")
            deployment = unquote(name)
        elif head == "v1":
            rest = after
    elif head in RESOURCES:
        rest = path
    elif head != "v1":
        return None
    if not rest:
        return None
    return _place(rest, deployment)


def _place(rest: str, deployment: str | None) -> Place:
    if ("." in rest or "%" in rest) and _DOTS.search(rest):
        raise BadRequest("The URL path must not contain dot segments.")
    if rest.startswith("chat/") and _CHAT_REST.fullmatch(rest):
        return Place(CHAT_PATH, chat=True, deployment=deployment)
    return Place(f"/{rest}", deployment=deployment)


def _split(path: str) -> tuple[str, str]:
    """The first segment, and what follows it without the slashes between them."""
    head, _, rest = path.partition("/")
    return head, rest.lstrip("/")
