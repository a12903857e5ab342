"""The official Python SDK streams turns that store, delete and fail to store memories."""

import json
import os
import sys
import urllib.request
from pathlib import Path
from typing import Any

from openai import OpenAI

URL = os.environ.get("CLIENT_URL", "")
KEY = "client-key"


def main() -> None:
    """Iterating over chunks, and the streaming helper."""
    for mode, ask in (("iterate", iterate), ("helper", use_helper)):
        headers = {"x-usher-user-id": f"openai-py-{mode}"}
        with OpenAI(base_url=URL, api_key=KEY, max_retries=0, default_headers=headers) as client:
            converse(client, headers["x-usher-user-id"], mode, ask)


def converse(client: OpenAI, user: str, mode: str, ask: Any) -> None:
    """All turns of a user, one line for each."""
    for turn in json.loads(Path(os.environ["CLIENT_TURNS"]).read_bytes()):
        if turn["fill"]:
            fill(user, turn["fill"])
        text, artifacts = ask(client, [{"role": "user", "content": turn["says"]}])
        told = [one.get("error_type") or one["type"] for one in artifacts]
        sys.stdout.write(json.dumps({"mode": mode, "told": told, "text": text}) + "\n")


def iterate(client: OpenAI, messages: list[Any]) -> tuple[str, list[dict[str, Any]]]:
    """The loop of most applications, which takes the first choice of every chunk."""
    text, artifacts = "", []
    for chunk in client.chat.completions.create(model="standin", messages=messages, stream=True):
        text += chunk.choices[0].delta.content or ""
        artifacts += find(chunk)
    return text, artifacts


def use_helper(client: OpenAI, messages: list[Any]) -> tuple[str, list[dict[str, Any]]]:
    """The SDK puts the chunks together."""
    artifacts = []
    with client.chat.completions.stream(model="standin", messages=messages) as events:
        for event in events:
            if event.type == "chunk":
                artifacts += find(event.chunk)
        return events.get_final_completion().choices[0].message.content or "", artifacts


def find(chunk: Any) -> list[dict[str, Any]]:
    """The artifacts on a chunk; SDKs keep fields that they don't know."""
    found: list[dict[str, Any]] = ((chunk.model_extra or {}).get("usher") or {}).get("memory", [])
    return found


def fill(user: str, value: str) -> None:
    """Take up room."""
    headers = {
        "x-usher-user-id": user,
        "authorization": f"Bearer {KEY}",
        "content-type": "application/json",
    }
    address = URL.removesuffix("/v1") + "/usher/memory/long"
    body = json.dumps({"value": value}).encode()
    request = urllib.request.Request(address, body, headers, method="PUT")
    urllib.request.urlopen(request, timeout=30).close()


if __name__ == "__main__":
    main()
