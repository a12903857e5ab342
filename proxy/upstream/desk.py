"""A round's answer comes in; what the client gets and what is asked next goes out, without I/O."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field, replace

import orjson
import xxhash

from proxy.observe.metrics import RoundOutcome
from proxy.plan.chain import read_text
from proxy.plan.envelope import Envelope, extend_array
from proxy.stream.collect import Answer, Call
from proxy.tools.choice import narrow_allowed
from proxy.tools.search import Query, parse_arguments, search
from proxy.tools.tokens import estimate_tokens
from proxy.upstream.brief import Brief
from proxy.upstream.fate import Fate, Fates, Ruling
from proxy.wire import JSONObject, dump

MAX_DECLARED = 128
"""OpenAI's ceiling for the tools of one request."""
MIN_GROWTH_BYTES = 256 * 1024
"""Hidden messages may always grow to this size; only beyond it the growth factor counts."""

LIMITS = ("max_tokens", "max_completion_tokens")
"""Where a client says how long an answer may get."""
SAID = ("content", "refusal", "audio", "images")
"""Fields of a message in which a model answers."""

OVER = '{"error":"There are no more searches. Call a tool that is loaded, or answer in words."}'
"""What a search hears that comes after the last round."""

_HIDDEN = {Fate.SEARCH: "search_round", Fate.RECALL: "triage", Fate.REPAIR: "repair"}
"""Fates after which the model is asked again, and what the ledger calls such a round."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What a round means: `calls` are the client's, and without `again` the turn is over.

    `finding` is what a hidden round came to; None for one that had nothing hidden in it. `mute`
    says that the model gave no answer, only calls that nobody takes any more.
    """

    calls: tuple[Call, ...]
    again: bool
    context: str = "main"
    finding: RoundOutcome | None = None
    mute: bool = False


@dataclass(slots=True)
class Parked:
    """What the client does not see of a turn but its next request needs back.

    `before` are hidden rounds, `message` the assistant's own last message with the hidden calls
    in it, `after` the results of those.
    """

    before: list[JSONObject] = field(default_factory=list)
    message: JSONObject | None = None
    after: list[JSONObject] = field(default_factory=list)


class Desk:
    """Settles the rounds of one turn.

    The loop is bounded four ways: a number of rounds, searches that find nothing new, the growth
    of the prompt, and the caller's deadline (`close`). After any of them one last round goes out
    without the search tool; a model that searches all the same is told so once.
    """

    def __init__(self, brief: Brief) -> None:
        self.brief = brief
        self._fates = Fates(brief)
        self.round = 0
        self.discovered: list[str] = []
        self.parked = Parked()
        self.searches = 0
        self.loaded_empty = False
        self._asked: set[str] = set()
        self._barren = 0
        self._closing = self._told_over = False
        self._retried_empty = False
        self._ids = set(brief.ids)

    @property
    def searching(self) -> bool:
        """Whether the search tool is declared in the next round."""
        arrangement = self.brief.arrangement
        if arrangement.search_raw is None:
            return False
        if self._closing:
            return not (arrangement.declared() or arrangement.frozen)
        return not (self._required and self.round > 0 and arrangement.surfaced.names)

    @property
    def _required(self) -> bool:
        choice = self.brief.choice
        return choice.kind == "required" or choice.mode == "required"

    def visible(self) -> set[str]:
        """The names whose calls are the client's for certain, so they may stream at once."""
        return self.brief.arrangement.declared()

    def names(self) -> list[str]:
        """The other names that the model knows: listed tools and ours."""
        toolbox = self.brief.toolbox
        recall = [self.brief.recall.name] if self.brief.recall is not None else []
        return [
            *self.brief.arrangement.pool,
            toolbox.search_name,
            toolbox.bridge_name,
            *recall,
        ]

    def close(self) -> None:
        """Makes the next round the last one."""
        self._closing = True
        arrangement = self.brief.arrangement
        if self._required and not arrangement.surfaced.names and not arrangement.frozen:
            room = max(0, MAX_DECLARED - len(arrangement.eager))
            arrangement.surfaced.add(list(arrangement.pool)[:room])

    def body(self) -> bytes:
        """The request of the next round."""
        brief = self.brief
        arrangement = brief.arrangement
        tools = arrangement.render(search=self.searching)
        if brief.recall is not None and not self._closing:
            tools = extend_array(tools, [brief.recall.raw])
        hidden = [dump(message) for message in self.parked.before]
        changes: dict[str, bytes | None] = {
            "tools": tools if tools != b"[]" else None,
            "messages": extend_array(brief.messages, hidden),
            "usher": None,
            **self._choice_change(tools),
            **self._limit_change(),
        }
        if brief.model is not None:
            changes["model"] = orjson.dumps(brief.model)
        if self.round > 0:
            changes["stream"] = b"true" if brief.stream else b"false"
        if brief.stream and brief.ask_usage:
            changes["stream_options"] = _ask_usage(brief.envelope)
        return brief.envelope.edit({k: v for k, v in changes.items() if _differs(brief, k, v)})

    def settle(self, answer: Answer) -> Settled:
        """Rules on every call of a round's answer and prepares the next round if there is one."""
        self.round += 1
        cut = answer.finish_reason in ("length", "content_filter")
        rulings = [self._fates.rule(call, closing=self._closing) for call in answer.calls]
        real = tuple(ruling.call for ruling in rulings if ruling.fate is Fate.REAL)
        hidden = [r for r in rulings if r.fate in _HIDDEN]
        if self._closing and not cut and self._is_mute(answer, rulings):
            return self._tell_over(answer, rulings)
        if cut or self._closing or not hidden:
            again = not cut and not real and self._should_retry(answer, hidden)
            if self.parked.before and not again:
                self.parked.message = _last_message(answer, real)
            return Settled(real, again)
        fates = {ruling.fate for ruling in hidden}
        context = next(name for fate, name in _HIDDEN.items() if fate in fates)
        if self._can_ask_again(real):
            rulings, real = [r for r in rulings if r.fate is not Fate.REAL], ()
        known = len(self._asked)
        rulings = self._answer_searches(rulings)
        finding = self._find(fates, repeated=len(self._asked) == known)
        message, results = self._write_results(answer, rulings)
        if real:
            self.parked.message, self.parked.after = message, results
            return Settled(real, again=False, context="main", finding=finding)
        self.parked.before.extend((message, *results))
        if self._exhausted():
            self.close()
            finding = "limit"
        return Settled((), again=True, context=context, finding=finding)

    def _is_mute(self, answer: Answer, rulings: Sequence[Ruling]) -> bool:
        """Whether the last round brought nothing but calls of tools of ours that are gone."""
        ours = bool(rulings) and all(ruling.fate is Fate.SWALLOW for ruling in rulings)
        return ours and answer.error is None and not _says_something(answer)

    def _tell_over(self, answer: Answer, rulings: Sequence[Ruling]) -> Settled:
        """One more round, in which the model has to speak; an end is never made up for it."""
        if self._told_over:
            return Settled((), again=False, context="search_round", finding="limit", mute=True)
        self._told_over = True
        told = [replace(ruling, reply=OVER) for ruling in rulings]
        message, results = self._write_results(answer, told)
        self.parked.before.extend((message, *results))
        return Settled((), again=True, context="search_round", finding="limit")

    def _find(self, fates: Container[Fate], *, repeated: bool) -> RoundOutcome | None:
        if Fate.SEARCH not in fates:
            return "repaired" if Fate.REPAIR in fates else None
        if self._barren == 0:
            return "found"
        return "duplicate" if repeated else "empty"

    def _can_ask_again(self, real: Sequence[Call]) -> bool:
        """Whether a client of single calls can wait for this one until the search is done.

        A call that already streams cannot be taken back.
        """
        streaming = self.brief.stream and any(call.name in self.visible() for call in real)
        return self.brief.sequential and not streaming

    def _answer_searches(self, rulings: Sequence[Ruling]) -> list[Ruling]:
        """Runs the searches of a message in order and surfaces what they and repairs name."""
        found_new = False
        answered: list[Ruling] = []
        for ruling in rulings:
            if ruling.fate is Fate.SEARCH:
                new, text = self._search(parse_arguments(ruling.call.arguments))
                found_new = found_new or bool(new)
                ruling = replace(ruling, reply=text)  # noqa: PLW2901 - the same call, answered
            elif ruling.fate is Fate.RECALL:
                found_new = True
            elif ruling.tool is not None:
                found_new = bool(self.brief.arrangement.surfaced.add((ruling.tool,))) or found_new
            answered.append(ruling)
        self._barren = 0 if found_new else self._barren + 1
        return answered

    def _search(self, query: Query) -> tuple[Sequence[str], str]:
        brief = self.brief
        self.searches += 1
        allowed = brief.choice.kind == "allowed"
        found = search(
            brief.toolbox.narrow(brief.arrangement.pool) if allowed else brief.toolbox.index,
            query,
            loaded=brief.arrangement.loaded(),
            asked=self._asked,
            limit=brief.settings.search_limit,
            max_new=brief.settings.search_max_new,
            schemas=brief.arrangement.frozen,
            max_chars=brief.settings.search_max_chars,
        )
        new = [name for name in found.new if name in brief.arrangement.pool]
        brief.arrangement.surfaced.add(new, brief.arrangement.surfaced.discovered)
        self.discovered.extend(new)
        return new, found.text

    def _write_results(
        self, answer: Answer, rulings: Sequence[Ruling]
    ) -> tuple[JSONObject, list[JSONObject]]:
        """The assistant's message as it goes back up, and a result for each hidden call in it."""
        calls: list[JSONObject] = []
        results: list[JSONObject] = []
        self._ids.update(ruling.call.id for ruling in rulings if ruling.fate is Fate.REAL)
        for position, ruling in enumerate(rulings):
            raw = render_call(ruling.call)
            if ruling.fate is not Fate.REAL:
                raw["id"] = self._unique_id(ruling.call.id, position)
                raw["function"] = {
                    "name": ruling.call.name,
                    "arguments": _valid_arguments(ruling.call.arguments),
                }
                results.append({"role": "tool", "tool_call_id": raw["id"], "content": ruling.reply})
            calls.append(raw)
        return {**answer.message, "tool_calls": calls}, results

    def _unique_id(self, call_id: str, position: int) -> str:
        """The provider's id, or one made from the conversation when it repeats or is missing."""
        if not call_id or call_id in self._ids:
            seed = f"{sorted(self._ids)}{self.round}{position}"
            call_id = f"call_{xxhash.xxh3_128_hexdigest(seed.encode())[:24]}"
        self._ids.add(call_id)
        return call_id

    def _exhausted(self) -> bool:
        settings = self.brief.settings
        grown = sum(len(dump(message)) for message in self.parked.before)
        budget = (settings.max_prompt_growth - 1) * len(self.brief.messages)
        return (
            self.round >= settings.max_rounds
            or self._barren >= 2
            or grown > max(MIN_GROWTH_BYTES, budget)
        )

    def _should_retry(self, answer: Answer, hidden: Iterable[Ruling]) -> bool:
        """Whether an empty final message after a search deserves one more try.

        Some models answer with nothing at all right after a tool was loaded.
        """
        empty = not _says_something(answer) and not answer.calls and answer.error is None
        if any(hidden) or not empty or not self.parked.before or self._retried_empty:
            return False
        self._retried_empty = True
        self.close()
        return answer.complete

    def _limit_change(self) -> dict[str, bytes | None]:
        """What is left of the client's limit when it has read text of hidden rounds already."""
        envelope = self.brief.envelope
        said = sum(len(read_text(message.get("content"))) for message in self._narration())
        spent = estimate_tokens(said)
        limits = {field: envelope.get(field) for field in LIMITS if spent and field in envelope}
        return {
            field: b"%d" % max(1, limit - spent)
            for field, limit in limits.items()
            if type(limit) is int
        }

    def _narration(self) -> Iterable[JSONObject]:
        """The hidden messages whose text the client has seen."""
        if self.brief.hold_text:
            return ()
        return (message for message in self.parked.before if message.get("role") == "assistant")

    def _choice_change(self, tools: bytes) -> dict[str, bytes | None]:
        """What becomes of `tool_choice`, so that it never speaks of a tool that is not declared."""
        brief = self.brief
        if tools == b"[]":
            return {"tool_choice": None, "parallel_tool_calls": None}
        if self._told_over and not self._required:
            return {"tool_choice": b'"none"'}
        if brief.choice.kind == "allowed":
            added = brief.toolbox.search_name if self.searching else None
            value = brief.envelope.get("tool_choice")
            return {"tool_choice": narrow_allowed(value, brief.arrangement.declared(), added)}
        if self._closing and self.searching:
            return {"tool_choice": b'"none"'}
        forced = brief.choice.kind == "named" and brief.toolbox.search_name in brief.choice.names
        return {"tool_choice": b'"auto"'} if forced and self.round > 0 else {}


def _says_something(answer: Answer) -> bool:
    return any(answer.message.get(field) for field in SAID)


def render_call(call: Call) -> JSONObject:
    """A tool call as the client gets it: the provider's own fields, our name and arguments."""
    if "function" not in call.raw:
        return {**call.raw, "id": call.id}
    function = {**call.raw["function"], "name": call.name, "arguments": call.arguments}
    return {**call.raw, "id": call.id, "type": "function", "function": function}


def _last_message(answer: Answer, calls: Sequence[Call]) -> JSONObject:
    message = {key: value for key, value in answer.message.items() if key != "tool_calls"}
    return {**message, "tool_calls": [render_call(call) for call in calls]} if calls else message


def _differs(brief: Brief, key: str, value: bytes | None) -> bool:
    present = brief.envelope.raw(key)
    return present is not None if value is None else present is None or present != value


def _ask_usage(envelope: Envelope) -> bytes | None:
    options = envelope.get("stream_options")
    if options is None:
        return b'{"include_usage":true}'
    if not isinstance(options, dict) or options.get("include_usage") is True:
        return bytes(envelope.raw("stream_options") or b"") or None
    return orjson.dumps({**options, "include_usage": True})


def _valid_arguments(arguments: str) -> str:
    """Arguments that a strict server accepts in history: what is no JSON object becomes one."""
    try:
        value = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        value = None
    return arguments if isinstance(value, dict) else "{}"
