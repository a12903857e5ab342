"""A chat request in a file comes in; what Usher would do with it, and why, goes out."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from proxy.app import build_gateway
from proxy.commands.output import print_json, print_table, print_text
from proxy.config import data_folder, load
from proxy.errors import UsherError
from proxy.plan.exchange import ChatRequest
from proxy.plan.identity import ANONYMOUS
from proxy.wire import JSONObject

PATH = "/v1/chat/completions"


def run(
    path: Path | None,
    environ: Mapping[str, str],
    request: Path,
    headers: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """Print the plan of a request; nothing is sent anywhere."""
    settings = load(path, environ).settings
    chat = ChatRequest(
        path=PATH,
        query="",
        headers=[read_header(line) for line in headers],
        body=read_request(request),
        caller=ANONYMOUS,
        request_id="explain",
    )
    plan = asyncio.run(build_gateway(settings, data_folder(environ)).turn.explain(chat))
    if as_json:
        print_json(plan)
    else:
        show(plan)


def read_request(path: Path) -> bytes:
    """The file's bytes, or standard input for `-`; UsherError when it is no JSON object."""
    raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise UsherError(f"{path}: not JSON: {error}") from None
    if not isinstance(found, dict):
        raise UsherError(f"{path}: a chat request is a JSON object")
    return raw


def read_header(line: str) -> tuple[bytes, bytes]:
    """`name: value` as the edge would see it."""
    name, colon, value = line.partition(":")
    if not colon:
        raise UsherError(f"--header {line}: write it as `name: value`")
    return name.strip().lower().encode(), value.strip().encode()


def show(plan: JSONObject) -> None:
    """The plan as text: the sums, then each tool's fate with its reason."""
    if plan["bypass"] is not None:
        print_text(f"passes untouched: {plan['bypass']}")
        return
    tools = plan["tools"]
    print_text(
        f"{tools['sent_by_client']} tools: {tools['kept']} kept, {tools['deferred']} deferred, "
        f"{len(tools['predicted'])} predicted, {len(tools['discovered'])} discovered"
    )
    if plan["tokens_saved"] is not None:
        print_text(f"about {plan['tokens_saved']:,} tokens of schema stay out of the prompt")
    print_text(f"catalogue {plan['catalogue']}")
    rows = (
        (row["tool"], row["fate"], row.get("score"), row["reason"]) for row in plan["decisions"]
    )
    print_table(("tool", "fate", "score", "why"), rows)
