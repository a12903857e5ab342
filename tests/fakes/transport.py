"""Transports without a socket: they keep what was sent and give what the test prepared."""

from collections.abc import Callable

from proxy.errors import UsherError
from proxy.upstream.transport import Prepared, UpstreamRequest

Outcome = Prepared | UsherError


class FakeTransport:
    """Gives its outcomes in order, or computes them by `answer`; errors are raised."""

    def __init__(
        self, *outcomes: Outcome, answer: Callable[[UpstreamRequest], Outcome] | None = None
    ) -> None:
        self.sent: list[UpstreamRequest] = []
        self.closed = False
        self._outcomes = list(outcomes)
        self._answer = answer

    async def send(self, request: UpstreamRequest) -> Prepared:
        self.sent.append(request)
        outcome = self._answer(request) if self._answer else self._outcomes.pop(0)
        if isinstance(outcome, UsherError):
            raise outcome
        return outcome

    async def aclose(self) -> None:
        self.closed = True
