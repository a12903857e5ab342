"""What a user asked for comes in; the memory agent's changes, checked and made, go out."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import orjson

from proxy.memory.change import Change, Delete, Hold, Origin, Outcome, Reject, Store
from proxy.memory.evidence import Heard, backs
from proxy.memory.instructions import FORGET_ALL, Hint, Limits, make_tools, write_messages
from proxy.memory.value import Refused, check_key, check_value, slugify, tidy
from proxy.memory.wishes import means_everything
from proxy.memory.writer import Errand, Writer, WriterFailed
from proxy.memory_settings import Memory as Settings
from proxy.stream.collect import Call
from proxy.tools.tokens import count_tokens
from proxy.upstream.desk import render_call
from proxy.wire import JSONObject

if TYPE_CHECKING:  # SQLAlchemy: 0.3 s and 25 MB, only where memory is on
    from proxy.memory.bank import Bank

_WHY = {"no_evidence": "no_evidence: store only what the user said, in the user's own words"}
MOST_CALLS = 16
"""Of tools in one answer; a model that wants more is not well."""
CONFIRM_SECONDS = 900.0
"""How long a wish to have everything forgotten waits for its second word."""
EVERYTHING = "*"
_STRICTNESS = ("off", "suspicious", "all")
_SETTLED = {"update", "delete", "unchanged", "pending"}


@dataclass(frozen=True, slots=True)
class Task:
    """One message that the gate let through."""

    heard: Heard
    errand: Errand
    hint: Hint = field(default_factory=Hint)
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """What a run did; `failure` says why it ended early, what was done before stays."""

    outcomes: tuple[Outcome, ...] = ()
    calls: int = 0
    failure: str | None = None


class Agent:
    """Runs the writing model, and lets through what may be stored."""

    def __init__(self, bank: "Bank", settings: Settings) -> None:
        self._bank = bank
        self._settings = settings
        self._limits = Limits(settings.valid_keys, settings.token_limit)

    async def run(self, task: Task, writer: Writer) -> Run:
        """At most so many model calls; the changes of each are one transaction.

        Raises Unavailable when the store fails.
        """
        own = self._settings.agent
        snapshot = await self._bank.read(task.errand.whose)
        messages = write_messages(task.heard, snapshot, task.hint, self._limits, own.instructions)
        wiping = means_everything(task.heard)
        confirm = max(
            self._settings.confirm, snapshot.person.confirm or "off", key=_STRICTNESS.index
        )
        done: list[Outcome] = []
        for number in range(1, own.max_calls + 1):
            body: JSONObject = {
                "messages": messages,
                "tools": make_tools(self._limits, everything=wiping),
                "stream": False,
                "temperature": own.temperature,
                "max_tokens": own.max_output_tokens,
                **own.parameters,
            }
            try:
                answer = await writer.complete(body, replace(task.errand, round=number))
            except WriterFailed as failed:
                return Run(tuple(done), number, str(failed))
            if not answer.calls:
                return Run(tuple(done), number)
            calls = answer.calls[:MOST_CALLS]
            if wiping and any(call.name == FORGET_ALL for call in calls):
                return Run((*done, await self._forget(task)), number)
            outcomes = await self._act(calls, task, confirm)
            done += outcomes
            if all(outcome.kind in _SETTLED for outcome in outcomes):
                return Run(tuple(done), number)
            messages = [*messages, *_exchange(calls, outcomes)]
        return Run(tuple(done), own.max_calls, "too_many_calls")

    async def _forget(self, task: Task) -> Outcome:
        """Everything, once the user has said so twice."""
        whose, origin = task.errand.whose, Origin(task.errand.request_id, task.score)
        asked = await self._bank.waits(whose, EVERYTHING, CONFIRM_SECONDS)
        if asked is not None:
            return await self._bank.confirm(whose, asked, origin)
        wish = Hold(EVERYTHING, None, "everything")
        return (await self._bank.change(whose, [wish], origin))[0]

    async def _act(self, calls: Sequence[Call], task: Task, confirm: str) -> list[Outcome]:
        changes = [self._read(call, task.heard, confirm) for call in calls]
        origin = Origin(task.errand.request_id, task.score)
        return await self._bank.change(task.errand.whose, changes, origin)

    def _read(self, call: Call, heard: Heard, confirm: str) -> Change:
        """A call as a change, or as the reason why it is none."""
        try:
            arguments = orjson.loads(call.arguments or "{}")
        except orjson.JSONDecodeError:
            arguments = None
        if not isinstance(arguments, dict) or not isinstance(arguments.get("key"), str):
            return Reject("", "bad_arguments")
        key = arguments["key"]
        try:
            if call.name == "delete_memory":
                return Delete(check_key(key, ()))
            if call.name != "set_memory" or not isinstance(arguments.get("value"), str):
                return Reject(slugify(key), "bad_arguments")
            slug = check_key(key, self._settings.valid_keys)
            value, suspicious = self._check(arguments["value"], confirm)
        except Refused as refused:
            return Reject(slugify(key), refused.reason)
        if not backs(heard, value):
            return Reject(slug, "no_evidence")
        if suspicious or confirm == "all":
            return Hold(slug, value, "suspicious" if suspicious else "confirm")
        return Store(slug, value, count_tokens(value))

    def _check(self, text: str, confirm: str) -> tuple[str, bool]:
        """What may be stored, and whether the user is to be asked about it. Raises Refused."""
        try:
            return check_value(text, self._settings.char_limit), False
        except Refused as refused:
            if refused.reason != "instruction" or confirm == "off":
                raise
            return tidy(text), True


def _exchange(calls: Sequence[Call], outcomes: Sequence[Outcome]) -> list[JSONObject]:
    """The model's calls and what came of them, as it reads them."""
    said: JSONObject = {
        "role": "assistant",
        "content": None,
        "tool_calls": [render_call(call) for call in calls],
    }
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": _tell(outcome)}
        for call, outcome in zip(calls, outcomes, strict=True)
    ]
    return [said, *results]


def _tell(outcome: Outcome) -> str:
    told: JSONObject = {"result": outcome.kind, "key": outcome.key}
    if outcome.reason:
        told["reason"] = _WHY.get(outcome.reason, outcome.reason)
    if outcome.suggest:
        told["suggest"] = outcome.suggest
    return orjson.dumps(told).decode()
