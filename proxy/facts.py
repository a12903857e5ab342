"""Plans, errors and upstream headers come in; the small facts about a turn go out."""

import asyncio
from collections.abc import Mapping

from proxy.draft import Draft
from proxy.errors import UsherError
from proxy.plan.plan import Decision, Recount, RequestPlan
from proxy.tools.history import Asked
from proxy.wire import Headers


def plan_of(draft: Draft, *, decisions: bool = False) -> RequestPlan:
    arrangement = draft.arrangement
    surfaced = arrangement.surfaced
    tools = len(draft.toolbox.catalogue.tools)
    return RequestPlan(
        bypass=None,
        tools=tools,
        kept=len(arrangement.eager),
        deferred=tools - len(arrangement.eager) - len(surfaced.names),
        predicted=tuple(surfaced.predicted),
        guessed=surfaced.guessed,
        discovered=tuple(surfaced.discovered),
        called=draft.history.called,
        saved=draft.toolbox.count_saved(arrangement.declared()),
        sent=draft.toolbox.count_sent(arrangement.declared()),
        delivery="frozen" if arrangement.frozen else "append",
        decisions=tuple(list_decisions(draft)) if decisions else (),
        catalogue=draft.toolbox.catalogue.digest,
        foreseeable=arrangement.pool if draft.predicts else (),
    )


def recounter(draft: Draft, plan: RequestPlan) -> Recount | None:
    """A later look at the tokens that are not counted yet; None where they are.

    It goes by the first round: what searches load afterwards was not in its prompt.
    """
    if plan.saved is not None:
        return None
    toolbox, declared = draft.toolbox, draft.arrangement.declared()
    return lambda: (toolbox.count_saved(declared), toolbox.count_sent(declared))


def facts_of(plan: RequestPlan, overhead: float) -> Headers:
    """What Usher did, as response headers; what is not known is left out."""
    headers: Headers = [(b"x-usher-overhead-ms", b"%.2f" % overhead)]
    if plan.tools:
        headers.append((b"x-usher-tools", plan.summary().encode()))
    if plan.saved is not None and not plan.observed:
        headers.append((b"x-usher-tokens-saved", str(plan.saved).encode()))
    return headers


def content_type(headers: Headers) -> bytes:
    for name, value in headers:
        if len(name) == 12 and name.lower() == b"content-type":
            return value.lower()
    return b""


def outcome_of(error: BaseException) -> str:
    if isinstance(error, UsherError):
        return error.code or "failed"
    return "client_gone" if isinstance(error, asyncio.CancelledError | GeneratorExit) else "failed"


def list_decisions(draft: Draft) -> list[Decision]:
    """Every tool's fate and its reason, in the client's order."""
    surfaced = draft.arrangement.surfaced
    fates = dict.fromkeys(surfaced.names, ("called", "history"))
    fates.update(dict.fromkeys(surfaced.predicted, ("predicted", "ranked")))
    fates.update(dict.fromkeys(surfaced.discovered, ("discovered", "searched")))
    reasons = draft.arrangement.reasons
    scores = _newest_scores(draft)
    decisions = []
    for tool in draft.toolbox.catalogue.tools:
        fate, reason = fates.get(tool.name, ("deferred", "listed"))
        if tool.name in reasons:
            fate, reason = "kept", reasons[tool.name]
        elif tool.name not in draft.arrangement.pool:
            reason = "not allowed"
        decisions.append(Decision(tool.name, fate, reason, scores.get(tool.name)))
    return decisions


def _newest_scores(draft: Draft) -> Mapping[str, float]:
    asked = [event.cue for event in draft.history.events if isinstance(event, Asked)]
    return draft.toolbox.predict(asked[-1]).scores if asked else {}
