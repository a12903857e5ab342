"""Transport for vendors of other formats: a chat request goes into litellm, OpenAI bytes out.

litellm costs seconds and 190 MB to import, so it is imported here alone, on the first request. Its
providers read their keys from the configuration or, like Bedrock, from the environment.
"""

import asyncio
import importlib
import logging
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from proxy.errors import BadRequest, NotFound, UpstreamError, UpstreamTimeout, UsherError
from proxy.upstream.target import LITELLM_HOST
from proxy.upstream.transport import Prepared, UpstreamRequest, UpstreamResponse
from proxy.wire import JSON, Headers, JSONObject

CHAT_PATH: Final = "/chat/completions"
JSON_HEADERS: Final = [(b"content-type", b"application/json")]

FIELDS: Final = frozenset({
    "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs",
    "max_completion_tokens", "max_tokens", "messages", "metadata", "modalities", "model", "n",
    "parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key",
    "prompt_cache_retention", "reasoning_effort", "response_format", "safety_identifier", "seed",
    "service_tier", "stop", "store", "stream", "stream_options", "temperature", "tool_choice",
    "tools", "top_logprobs", "top_p", "user", "verbosity", "web_search_options",
    "thinking", "top_k",
})  # fmt: skip
"""What a caller may set: litellm's own arguments, `api_base` for one, could send keys elsewhere."""

PASSED_BACK: Final = ("retry-after", "retry-after-ms", "x-should-retry", "x-request-id")


@dataclass(frozen=True, slots=True)
class _Library:
    """What is used of litellm; `errors` are all that its calls raise."""

    acompletion: Callable[..., Any]
    errors: tuple[type[Exception], ...]
    aclose: Callable[[], Any]


class LitellmTransport:
    """Chat completions of every `kind: litellm` provider."""

    def __init__(self) -> None:
        self._library: _Library | None = None

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        try:
            arguments = await _arguments(request)
        except UsherError as error:
            return _json(error.status, error.body())
        if self._library is None:
            self._library = await asyncio.to_thread(_load)
        try:
            async with asyncio.timeout(request.idle_seconds):
                result = await self._library.acompletion(**arguments)
                if not arguments.get("stream"):
                    return _json(HTTPStatus.OK, _completion(result))
                first = await anext(result, None)
        except TimeoutError:
            raise _quiet(request.idle_seconds) from None
        except self._library.errors as error:
            return _refusal(error)
        return _Stream(result, first, self._library.errors, request.idle_seconds)

    async def aclose(self) -> None:
        if self._library is not None:
            await self._library.aclose()


class _Stream:
    """A streamed reply as event frames; its first chunk is here, so it has begun well."""

    status: Final = HTTPStatus.OK
    headers: Final = [(b"content-type", b"text/event-stream; charset=utf-8")]

    def __init__(
        self, result: Any, first: Any, errors: tuple[type[Exception], ...], idle_seconds: float
    ) -> None:
        self._result = result
        self._next = first
        self._errors = errors
        self._idle_seconds = idle_seconds

    async def chunks(self) -> AsyncIterator[bytes]:
        model = None
        try:
            while self._next is not None:
                data = _chunk(self._next)
                model = data["model"] = model or data.get("model")  # litellm changes it at the end
                yield _frame(data)
                self._next = await self._advance()
        except self._errors as error:
            yield _frame(_error_body(error))
        finally:
            await self.aclose()
        yield b"data: [DONE]\n\n"

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])

    async def aclose(self) -> None:
        await self._result.aclose()

    async def _advance(self) -> Any:
        try:
            async with asyncio.timeout(self._idle_seconds):
                return await anext(self._result, None)
        except TimeoutError:
            raise _quiet(self._idle_seconds) from None


def _load() -> _Library:
    """Import litellm without its downloads and its chatter."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm: Any = importlib.import_module("litellm")
    litellm.suppress_debug_info = True
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)  # its warnings may quote a body
    bases = (importlib.import_module("openai").OpenAIError,)
    errors = (*bases, *litellm.exceptions.LITELLM_EXCEPTION_TYPES)
    return _Library(litellm.acompletion, errors, litellm.close_litellm_async_clients)


async def _arguments(request: UpstreamRequest) -> JSONObject:
    """The keyword arguments of `acompletion`. Raises BadRequest or NotFound."""
    parts = urlsplit(request.url)
    if request.method != "POST" or not parts.path.endswith(CHAT_PATH):
        raise NotFound("This provider offers chat completions only.")
    arguments = await _read_body(request)
    for name in arguments:
        if name not in FIELDS:
            raise BadRequest(f"This provider cannot be given {name!r}.", param=name)
    for name in ("model", "messages"):
        if name not in arguments:
            raise BadRequest(f"You must provide {name!r}.", param=name)
    arguments |= {"max_retries": 0, "num_retries": 0, "timeout": request.idle_seconds + 5}
    if parts.hostname != LITELLM_HOST:
        arguments["api_base"] = request.url.partition("?")[0].removesuffix(CHAT_PATH)
    key = _key(request.headers)
    if key is not None:
        arguments["api_key"] = key
    return arguments


async def _read_body(request: UpstreamRequest) -> JSONObject:
    raw = request.body or b""
    if not isinstance(raw, bytes):
        raw = b"".join([chunk async for chunk in raw])
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise BadRequest("The body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise BadRequest("The body is not a JSON object.")
    return {name: value for name, value in body.items() if value is not None}


def _key(headers: Headers) -> str | None:
    """The provider's configured key, as `request_headers` put it there."""
    for name, value in headers:
        if name in {b"api-key", b"x-api-key", b"x-goog-api-key"}:
            return value.decode()
        if name == b"authorization":
            return value.decode().removeprefix("Bearer ")
    return None


def _completion(result: Any) -> JSONObject:
    """A reply with the keys that OpenAI's clients require and without litellm's empty ones."""
    body: JSONObject = _without_nulls(result.model_dump())
    body["choices"] = [
        {
            **choice,
            "logprobs": choice.get("logprobs"),
            "finish_reason": choice.get("finish_reason"),
            "message": {"content": None, "refusal": None, **choice.get("message", {})},
        }
        for choice in body.get("choices", [])
    ]
    return body


def _chunk(result: Any) -> JSONObject:
    body: JSONObject = _without_nulls(result.model_dump())
    body["choices"] = [
        {
            **choice,
            "delta": choice.get("delta", {}),
            "finish_reason": choice.get("finish_reason"),
        }
        for choice in body.get("choices", [])
    ]
    return body


def _without_nulls(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {name: _without_nulls(part) for name, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value


def _refusal(error: Exception) -> Prepared:
    """The vendor's error with its own status and retry hints."""
    status = getattr(error, "status_code", None)
    response = getattr(error, "response", None)
    found = getattr(response, "headers", None) or {}
    headers = [(name.encode(), str(found[name]).encode()) for name in PASSED_BACK if name in found]
    if not isinstance(status, int) or not 400 <= status <= 599:
        status = HTTPStatus.BAD_GATEWAY
    return _json(status, _error_body(error), headers)


def _error_body(error: Exception) -> JSONObject:
    return {
        "error": {
            "message": str(getattr(error, "message", None) or type(error).__name__),
            "type": getattr(error, "type", None) or UpstreamError.type,
            "param": getattr(error, "param", None),
            "code": getattr(error, "code", None),
        }
    }


def _quiet(seconds: float) -> UpstreamTimeout:
    return UpstreamTimeout(f"no answer through litellm within {seconds:g} s")


def _json(status: int, body: JSONObject, headers: Headers | None = None) -> Prepared:
    return Prepared(status, [*JSON_HEADERS, *(headers or [])], orjson.dumps(body))


def _frame(data: JSONObject) -> bytes:
    return b"data: " + orjson.dumps(data) + b"\n\n"
