"""The body of `POST /usher/tools/search` comes in; the best tools with their schemas go out."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from proxy.errors import BadRequest
from proxy.tools.document import Document
from proxy.tools.rank import Index
from proxy.wire import JSON, JSONObject

TOP_K, MOST = 5, 20
NO_TOOLS = b"[]"
DIGITS = 4


@dataclass(frozen=True, slots=True)
class Lookup:
    """A question about a catalogue: its raw `tools` array, or the digest of a known one."""

    query: str
    top_k: int
    tools: bytes | None
    digest: str | None


def read_lookup(body: bytes) -> Lookup:
    """Read {query, top_k = 5 (at most 20), tools | catalogue}; anything else is a 400."""
    try:
        parsed: JSON = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest("the body is not JSON") from error
    if not isinstance(parsed, dict):
        raise BadRequest("the body is no JSON object")
    query, tools, digest = parsed.get("query"), parsed.get("tools"), parsed.get("catalogue")
    if not isinstance(query, str):
        raise BadRequest("`query` must be a text", param="query")
    if (tools is None) == (digest is None):
        raise BadRequest("give either `tools` or the `catalogue` digest", param="tools")
    if tools is not None and not isinstance(tools, list):
        raise BadRequest("`tools` must be an array", param="tools")
    if digest is not None and not isinstance(digest, str):
        raise BadRequest("`catalogue` must be a digest", param="catalogue")
    raw = None if tools is None else orjson.dumps(tools)
    return Lookup(query, _top_k(parsed.get("top_k")), raw, digest)


def _top_k(value: JSON) -> int:
    if value is None:
        return TOP_K
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise BadRequest(f"`top_k` must be a number from 1 to {MOST}", param="top_k")
    return value


def look_up(index: Index, lookup: Lookup) -> JSONObject:
    """Rank the catalogue; scores are shares of the best one's, so only their order is a promise."""
    hits = index.rank(lookup.query, lookup.top_k)
    best = hits[0].score if hits else 1.0
    documents: Sequence[Document] = index.documents
    return {
        "tools": [
            {
                "name": documents[hit.position].name,
                "description": documents[hit.position].description,
                "inputSchema": _schema(documents[hit.position]),
                "score": round(hit.score / best, DIGITS),
            }
            for hit in hits
        ],
        "total_searched": len(documents),
    }


def _schema(document: Document) -> JSON:
    return orjson.loads(document.parameters) if document.parameters else {"type": "object"}
