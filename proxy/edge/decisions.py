"""Requests for a decision in, in either dialect; what the configured judge says out."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

import msgspec
import orjson
from starlette.routing import BaseRoute, Route

from proxy.edge.asked import Asked
from proxy.edge.endpoint import Endpoint
from proxy.edge.exchange import Edge, Exchange
from proxy.edge.passthrough import Forward, Passthrough
from proxy.edge.paths import Place
from proxy.errors import UsherError
from proxy.judge import serve_decisions, serve_systemone
from proxy.judge.build import Judges
from proxy.judge.deadline import Deadline
from proxy.judge.job import Purpose
from proxy.judge.serve import Decision, Invalid, Served, merge_models
from proxy.judge.verdict import Verdict
from proxy.keys.limiter import check_model
from proxy.plan.exchange import Reply
from proxy.wire import Headers

RELEASED = "2026-11-30"
"""TypeSafe's model list wants a date; ours are aliases, so it is that of the feature."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words of one kind of client."""

    read: Callable[[bytes], Decision]
    write: Callable[[Decision, Verdict, str], Served]
    write_flaws: Callable[[Invalid, str], Served]
    write_error: Callable[[UsherError, str], Served]


SYSTEM_ONE = Dialect(
    serve_systemone.read_request,
    serve_systemone.write_verdict,
    serve_systemone.write_flaws,
    serve_systemone.write_error,
)
OPENAI = Dialect(
    serve_decisions.read_request,
    serve_decisions.write_verdict,
    serve_decisions.write_flaws,
    serve_decisions.write_error,
)


class Decider:
    """Answers requests of one dialect."""

    def __init__(self, judges: Judges, dialect: Dialect, seconds: float) -> None:
        self._judges = judges
        self._dialect = dialect
        self._seconds = seconds

    async def answer(self, asked: Asked) -> Reply:
        """Read, judge, write. A key's models and upstream hold here as they do for chat."""
        try:
            decision = self._dialect.read(asked.body)
        except Invalid as invalid:
            return _reply(self._dialect.write_flaws(invalid, asked.request_id))
        grant = asked.caller.grant
        if grant is not None:
            check_model(grant, decision.model)
        bound = grant.upstream if grant is not None else None
        judge = self._judges.for_model(decision.model, _own_credential(asked), bound)
        purpose = Purpose(
            "served",
            request_id=asked.request_id,
            tenant=asked.caller.tenant,
            key=asked.caller.key,
            user=asked.caller.user,
        )
        verdict = await judge.decide(
            decision.state, decision.questions, Deadline.after(self._seconds), purpose
        )
        return _reply(self._dialect.write(decision, verdict, asked.request_id))


class DecisionEndpoint(Endpoint):
    """An endpoint whose refusals (key, size, encoding) are worded in its dialect, too."""

    def __init__(self, edge: Edge, judges: Judges, dialect: Dialect, seconds: float) -> None:
        super().__init__(edge, Decider(judges, dialect, seconds).answer)
        self._dialect = dialect

    async def _work(self, exchange: Exchange) -> Reply:
        try:
            return await super()._work(exchange)
        except UsherError as error:
            return _reply(self._dialect.write_error(error, exchange.head.request_id))


class ModelList(Passthrough):
    """The upstream's model list, with the names that decision clients look for added."""

    def __init__(self, edge: Edge, forward: Forward, judges: Judges) -> None:
        super().__init__(edge, forward)
        self._judges = judges

    async def _work(self, exchange: Exchange) -> Reply:
        scope = {
            **exchange.scope,
            "path_params": {"place": Place("/models")},
            "headers": [
                pair for pair in exchange.scope["headers"] if pair[0] != b"accept-encoding"
            ],
        }
        asked = msgspec.structs.replace(exchange, scope=scope)
        reply = await super()._work(asked)
        if reply.status != 200 or isinstance(reply.body, bytes):
            return reply
        body = await _collect(reply.body)
        try:
            found = orjson.loads(body)
        except orjson.JSONDecodeError:
            return Reply(reply.status, reply.headers, body)
        merged = merge_models(found, self._judges.names(), RELEASED)
        return Reply(reply.status, reply.headers, orjson.dumps(merged))


def decision_routes(
    edge: Edge, judges: Judges, forward: Forward, seconds: float
) -> Sequence[BaseRoute]:
    """The routes of a decision provider, to go before what is forwarded."""
    system_one = DecisionEndpoint(edge, judges, SYSTEM_ONE, seconds)
    openai = DecisionEndpoint(edge, judges, OPENAI, seconds)
    return [
        Route("/v1/systemone", system_one, methods=["POST"]),
        Route("/v1/decisions", openai, methods=["POST"]),
        Route("/v1/models", ModelList(edge, forward, judges), methods=["GET"]),
    ]


async def _collect(body: AsyncIterator[bytes]) -> bytes:
    try:
        return b"".join([chunk async for chunk in body])
    finally:
        close = getattr(body, "aclose", None)
        if close is not None:
            await close()


def _own_credential(asked: Asked) -> str | None:
    """The caller's own Authorization, for an upstream without a key; never a gateway key."""
    return None if asked.caller.used_gateway_key else _find(asked.headers, b"authorization")


def _find(headers: Headers, name: bytes) -> str | None:
    values = [value.decode("latin-1") for key, value in headers if key.lower() == name]
    return values[0] if values else None


def _reply(served: Served) -> Reply:
    return Reply(served.status, served.headers, served.body)
