"""A small chat request comes in; the model's answer goes out, and a row into the books."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import orjson

from proxy.errors import UpstreamError
from proxy.ledger.usage import Row, read_usage
from proxy.memory.ability import Ability, ability_of, refused_parameter
from proxy.memory.principal import Principal
from proxy.stream.collect import Answer, read_completion
from proxy.upstream.transport import Transport, UpstreamRequest
from proxy.wire import JSON, Headers, JSONObject

MOST_BYTES = 1024 * 1024
MOST_RETRIES = 2


class WriterFailed(Exception):
    """No answer; the text is an outcome of the ledger, never a provider's words."""


@dataclass(frozen=True, slots=True)
class Errand:
    """For whom and for which request a model is asked."""

    whose: Principal
    request_id: str
    key: str
    round: int = 1


class Writer(Protocol):
    """A model that can call tools."""

    async def complete(self, body: JSONObject, errand: Errand) -> Answer:
        """Its answer. Raises WriterFailed."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model is."""

    provider: str
    model: str
    url: str
    headers: Headers


@dataclass(slots=True)
class ChatWriter:
    """Any chat model; learns which parameters it does not take."""

    transport: Transport
    place: Place
    seconds: float
    record: Callable[[Row], None]
    ability: Ability = field(init=False)

    def __post_init__(self) -> None:
        self.ability = ability_of(self.place.model)

    async def complete(self, body: JSONObject, errand: Errand) -> Answer:
        """Ask, and ask again without a parameter that a 400 names."""
        outcome = "malformed"
        for _ in range(MOST_RETRIES + 1):
            sent = self.ability.fit({"model": self.place.model, **body})
            status, reply = await self._booked(sent, errand)
            if status == 200 and isinstance(reply, dict) and reply.get("choices"):
                return read_completion(reply)
            outcome = _outcome(status, reply)
            named = refused_parameter(reply, sent) if status == 400 else None
            if named is None:
                break
            self.ability = self.ability.without(named)
        raise WriterFailed(outcome)

    async def _booked(self, sent: JSONObject, errand: Errand) -> tuple[int, JSON]:
        started, begun = time.time(), time.perf_counter()
        status, reply, outcome = 0, None, "aborted"
        try:
            async with asyncio.timeout(self.seconds):
                status, reply = await self._post(sent)
            outcome = _outcome(status, reply)
        except TimeoutError:
            outcome = "timeout"
            raise WriterFailed(outcome) from None
        except UpstreamError as error:
            outcome = error.code or "network"
            raise WriterFailed(outcome) from None
        finally:
            elapsed = (time.perf_counter() - begun) * 1000
            self.record(make_row(self.place, errand, reply, (outcome, started, elapsed)))
        return status, reply

    async def _post(self, sent: JSONObject) -> tuple[int, JSON]:
        response = await self.transport.send(
            UpstreamRequest(
                method="POST",
                url=self.place.url,
                headers=self.place.headers,
                body=orjson.dumps(sent),
                connect_seconds=min(5.0, self.seconds),
                idle_seconds=self.seconds,
            )
        )
        body = bytearray()
        try:
            async for chunk in response.chunks():
                body += chunk
                if len(body) > MOST_BYTES:
                    return response.status, None
        finally:
            await response.aclose()
        try:
            return response.status, orjson.loads(bytes(body))
        except orjson.JSONDecodeError:
            return response.status, None


def make_row(place: Place, errand: Errand, reply: JSON, fate: tuple[str, float, float]) -> Row:
    """The ledger's line; `fate` is the outcome, when it started and how many ms it took."""
    found = reply if isinstance(reply, dict) else {}
    tokens = read_usage(found.get("usage"))
    answered = found.get("model")
    return Row(
        request_id=errand.request_id,
        tenant=errand.whose.tenant.partition(":")[0],
        key=errand.key,
        user=errand.whose.user,
        context="memory",
        round=errand.round,
        provider=place.provider,
        model=place.model,
        answered_model=answered if isinstance(answered, str) else None,
        prompt_tokens=tokens.prompt,
        cached_tokens=tokens.cached,
        completion_tokens=tokens.completion,
        reasoning_tokens=tokens.reasoning,
        cost_nano_usd=tokens.cost_nano_usd,
        cost_source=None,
        started_at=fate[1],
        latency_ms=fate[2],
        tools_sent=None,
        tools_deferred=None,
        tokens_avoided=None,
        outcome=fate[0],
        cache_write_tokens=tokens.cache_write,
        detail={"purpose": "memory_agent"},
    )


def _outcome(status: int, reply: JSON) -> str:
    if status != 200:
        return f"http_{status}"
    return "ok" if isinstance(reply, dict) and reply.get("choices") else "malformed"
