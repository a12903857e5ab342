"""A request that is not for us comes in; its bytes go up and the upstream's bytes come down."""

from collections.abc import AsyncGenerator

import orjson

from proxy.account import Account
from proxy.dispatch import Dispatch
from proxy.draft import Opened
from proxy.errors import StreamTruncated
from proxy.facts import content_type, facts_of, outcome_of
from proxy.memory.session import Session
from proxy.memory.telling import tell
from proxy.plan.exchange import Reply
from proxy.stream.meter import Meter
from proxy.stream.watched import Watched
from proxy.triage.hide import hide_usage
from proxy.upstream.headers import response_headers
from proxy.upstream.transport import UpstreamResponse, take_whole
from proxy.wire import Headers


async def forward(
    dispatch: Dispatch, opened: Opened, account: Account, session: Session | None = None
) -> Reply:
    """The upstream's own reply; its usage is read as it goes by and booked at its end.

    A `session` that has something to tell adds it at the end. Raises UpstreamError when there is
    no reply.
    """
    telling = session if session is not None and session.live else None
    overhead = account.stamp()
    try:
        response = await dispatch.send(opened, plain_body(opened), 1 if telling else 0)
    except BaseException as error:
        account.enter_single(outcome_of(error))
        account.close(outcome_of(error))
        raise
    account.adopt(response.headers)
    headers = response_headers(response.headers, altered=telling is not None)
    headers.extend(facts_of(account.plan, overhead))
    meter = Meter(content_type(response.headers))
    if telling is None and opened.triage is None and not meter.stream:
        whole = take_whole(response)
        if whole is not None:
            meter.feed(whole)
            outcome = "ok" if response.status < 400 else f"http_{response.status}"
            account.enter_single(outcome, *meter.read())
            account.close(outcome)
            return Reply(response.status, headers, whole)

    async def end(outcome: str) -> None:
        if outcome == "ok" and response.status >= 400:
            outcome = f"http_{response.status}"
        account.enter_single(outcome, *meter.read())
        account.close(outcome)
        if telling is not None:
            telling.give_back()
        await response.aclose()

    chunks = _metered(response, meter)
    if opened.triage is not None and opened.triage.hides_usage:
        chunks = hide_usage(chunks)
    if telling is not None and response.status == 200:
        chunks = tell(chunks, telling, content_type(response.headers))
    return Reply(response.status, headers, Watched(chunks, end))


def plain_body(opened: Opened) -> bytes:
    """The client's own bytes, unless they hold options of ours or the target has another model."""
    envelope, model = opened.envelope, opened.target.model
    changes: dict[str, bytes | None] = {}
    if envelope is not None and "usher" in envelope:
        changes["usher"] = None
    if envelope is not None and model is not None and "model" in envelope:
        changes["model"] = orjson.dumps(model)
    if opened.triage is not None:
        changes.update(opened.triage.changes())
    if not changes or envelope is None or not envelope.spliceable:
        return opened.request.body
    return envelope.edit(changes)


async def _metered(response: UpstreamResponse, meter: Meter) -> AsyncGenerator[bytes]:
    """The upstream's reads as they come, with an eye on the usage that they state.

    Raises StreamTruncated for a stream that just stops: SDKs take that for a whole answer.
    """
    async for chunk in response.chunks():
        meter.feed(chunk)
        yield chunk
    if response.status == 200 and meter.cut and not _is_encoded(response.headers):
        raise StreamTruncated("the upstream's stream ended before its answer did")


def _is_encoded(headers: Headers) -> bool:
    return any(name.lower() == b"content-encoding" for name, _ in headers)
