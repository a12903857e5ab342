"""A request and its answer go in; the usage that a provider would report comes out."""

from collections import OrderedDict

import orjson
import xxhash

from proxy.tools.tokens import count_tokens
from proxy.wire import JSONObject

BLOCK_CHARS, MAX_BLOCKS, MIN_CACHED = 512, 65_536, 1024
"""Prompts are remembered in blocks; fewer tokens than OpenAI's 1,024 are never reported cached."""


class Meter:
    """Counts o200k tokens; with `cache`, also those that an earlier prompt began with."""

    def __init__(self, *, cache: bool = False) -> None:
        self._seen: OrderedDict[str, None] | None = OrderedDict() if cache else None

    def measure(self, body: JSONObject, message: JSONObject) -> JSONObject:
        """The usage object of one completion."""
        prompt = _prompt_text(body)
        spent = count_tokens(prompt)
        said = count_tokens(_message_text(message))
        cached = self._count_cached(prompt)
        return {
            "prompt_tokens": spent,
            "completion_tokens": said,
            "total_tokens": spent + said,
            "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
        }

    def _count_cached(self, prompt: str) -> int:
        if self._seen is None:
            return 0
        known, shared = True, 0
        state = xxhash.xxh3_128()
        for start in range(0, len(prompt) - BLOCK_CHARS + 1, BLOCK_CHARS):
            state.update(prompt[start : start + BLOCK_CHARS].encode())
            key = state.hexdigest()
            known = known and key in self._seen
            shared = start + BLOCK_CHARS if known else shared
            self._seen[key] = None
            self._seen.move_to_end(key)
        while len(self._seen) > MAX_BLOCKS:
            self._seen.popitem(last=False)
        tokens = count_tokens(prompt[:shared])
        return tokens if tokens >= MIN_CACHED else 0


def _prompt_text(body: JSONObject) -> str:
    """What a provider puts before the model: tools first, then the messages in order."""
    tools = body.get("tools")
    parts = [orjson.dumps(tools).decode()] if tools else []
    parts += (orjson.dumps(message).decode() for message in body["messages"])
    return "\n".join(parts)


def _message_text(message: JSONObject) -> str:
    calls = message.get("tool_calls")
    text = message.get("content") or ""
    return text + orjson.dumps(calls).decode() if calls else text
