"""A body and what was opened of its request come in; the upstream's response goes out."""

from collections.abc import Mapping

from proxy.draft import Opened
from proxy.observe.trace import TRACEPARENT, Tracer
from proxy.settings import Upstream
from proxy.upstream.call import call
from proxy.upstream.decode import decode_response
from proxy.upstream.headers import request_headers
from proxy.upstream.target import url_for
from proxy.upstream.transport import Transport, UpstreamRequest, UpstreamResponse
from proxy.wire import Headers

IDEMPOTENCY = b"idempotency-key"


class Dispatch:
    """Makes upstream calls; `transports` are keyed by the kind of a target."""

    def __init__(
        self,
        settings: Upstream,
        transports: Mapping[str, Transport],
        tracer: Tracer | None = None,
    ) -> None:
        self._settings = settings
        self._transports = transports
        self._tracer = tracer

    async def send(self, opened: Opened, body: bytes, number: int = 0) -> UpstreamResponse:
        """One call; `number` is that of a round, 0 for a body that is passed on as it is.

        A round's response is in plain bytes. Raises UpstreamError.
        """
        request, target, triage = opened.request, opened.target, opened.triage
        plain = number > 0 or (triage is not None and triage.altering)
        headers = vary_key(request.headers, number)
        if triage is not None:
            await triage.send()
        if self._tracer is not None:
            headers = join_trace(headers, self._tracer.begin(request.request_id, headers))
        response = await call(
            self._transports[target.kind],
            UpstreamRequest(
                method="POST",
                url=url_for(target, request.path, request.query, request.azure_deployment),
                headers=request_headers(
                    headers,
                    target,
                    intercepted=plain,
                    own_credentials=not request.caller.used_gateway_key,
                ),
                body=body,
                connect_seconds=self._settings.connect_seconds,
                idle_seconds=opened.policy.timeout or self._settings.idle_seconds,
            ),
            self._settings.retries,
        )
        if plain:
            response = decode_response(response)
        return response if triage is None else triage.hear(response)


def join_trace(headers: Headers, parent: bytes | None) -> Headers:
    """The headers with our span as the upstream's parent; None leaves the caller's alone."""
    if parent is None:
        return headers
    kept = [(name, value) for name, value in headers if name.lower() != TRACEPARENT]
    return [*kept, (TRACEPARENT, parent)]


def vary_key(headers: Headers, number: int) -> Headers:
    """The client's headers; an idempotency key stands for one call, so later rounds vary it."""
    if number < 2:
        return headers
    suffix = b"-r%d" % number
    return [(n, v + suffix if n.lower() == IDEMPOTENCY else v) for n, v in headers]
