"""What a model says in a round comes in; the bytes of a provider with its own habits go out."""

import json
import random
from dataclasses import dataclass

from hypothesis import strategies as st

from proxy.wire import JSON, JSONObject

VISIBLE = {"t0", "tool", "tool_b"}
NAMES = [*sorted(VISIBLE), "tool_search", "unloaded"]

_WORDS = ["a", "b", " ", "\n", "\r", '"', "\\", "ü", "🌍", "\u2028", "data: "]
_TRAPS = [',"usage":null', '"role":"assistant",', '"choices"', '"tool_calls"', "null"]
_texts = st.lists(st.sampled_from(_WORDS + _TRAPS), max_size=4).map("".join)


@dataclass(frozen=True)
class Habits:
    """How a provider writes its streams."""

    index: str
    ids: str
    names: str
    objects: bool
    roles: bool
    heads: bool
    finish: str
    usage: str
    spaces: bool
    ascii: bool
    end: bytes
    done: bool

    @property
    def interleaves(self) -> bool:
        return self.index == "given" or self.ids == "again"


habits = st.builds(
    Habits,
    index=st.sampled_from(["given", "given", "missing", "shared"]),
    ids=st.sampled_from(["once", "once", "again", "null", "empty", "never"]),
    names=st.sampled_from(["whole", "whole", "pieces", "again"]),
    objects=st.booleans(),
    roles=st.booleans(),
    heads=st.booleans(),
    finish=st.sampled_from(["tool_calls", "stop", "with last", "empty before"]),
    usage=st.sampled_from(["own chunk", "no choices", "finish", "every chunk", "none"]),
    spaces=st.booleans(),
    ascii=st.booleans(),
    end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    done=st.booleans(),
)


@dataclass(frozen=True)
class Round:
    """What the model says in one round: a text, then calls as (name, arguments)."""

    text: list[str]
    calls: list[tuple[str, JSONObject]]


_arguments = st.dictionaries(st.sampled_from(["q", "ü"]), _texts | st.integers(), max_size=2)


def rounds(names: list[str], least: int) -> st.SearchStrategy[Round]:
    call = st.tuples(st.sampled_from(names), _arguments)
    return st.builds(
        Round, st.lists(_texts, max_size=3), st.lists(call, min_size=least, max_size=3)
    )


turns = st.tuples(
    st.lists(rounds(["tool_search", "unloaded"], 1), max_size=2), rounds(NAMES, 0)
).map(lambda parts: [*parts[0], parts[1]])


class Provider:
    """Writes rounds in its own way; what a habit leaves open is drawn from `dice`."""

    def __init__(self, habits: Habits, dice: random.Random) -> None:
        self.habits = habits
        self.dice = dice
        self.number = 0

    def write(self, spoken: Round) -> bytes:
        """The bytes of one round."""
        self.number += 1
        deltas: list[JSONObject] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": text} for text in spoken.text]
        deltas += [{"tool_calls": group} for group in self._group(self._fragments(spoken.calls))]
        if self.habits.roles:
            deltas = [{"role": "assistant"} | delta for delta in deltas]
        reason = "tool_calls" if spoken.calls and self.habits.finish != "stop" else "stop"
        reasons: list[str | None] = ["" if self.habits.finish == "empty before" else None]
        reasons *= len(deltas)
        if self.habits.finish == "with last":
            reasons[-1] = reason
        else:
            deltas, reasons = [*deltas, {}], [*reasons, reason]
        chunks = [self._chunk([self._choice(*pair)]) for pair in zip(deltas, reasons, strict=True)]
        self._count(chunks)
        events = [self._event(json.dumps(chunk, **self._style())) for chunk in chunks]
        return b"".join(events) + (self._event("[DONE]") if self.habits.done else b"")

    def _style(self) -> dict[str, JSON]:
        separators = (", ", ": ") if self.habits.spaces else (",", ":")
        return {"separators": separators, "ensure_ascii": self.habits.ascii}

    def _event(self, data: str) -> bytes:
        return b"data: " + data.encode() + 2 * self.habits.end

    def _choice(self, delta: JSONObject, reason: str | None) -> JSONObject:
        return {"index": 0, "delta": delta, "finish_reason": reason}

    def _chunk(self, choices: list[JSONObject]) -> JSONObject:
        chunk = self.dice.randrange(10**6) if self.habits.heads else 0
        head = {"id": f"id-{self.number}-{chunk}", "object": "chat.completion.chunk"}
        return head | {"created": self.number, "model": f"m{self.number}", "choices": choices}

    def _count(self, chunks: list[JSONObject]) -> None:
        usage = {"total_tokens": self.number}
        if self.habits.usage == "own chunk":
            for chunk in chunks:
                chunk["usage"] = None
            chunks.append(self._chunk([]) | {"usage": usage})
        elif self.habits.usage == "no choices":
            chunks.append({"usage": usage})
        elif self.habits.usage == "finish":
            chunks[-1]["usage"] = usage
        elif self.habits.usage == "every chunk":
            for chunk in chunks:
                chunk["usage"] = usage

    def _fragments(self, calls: list[tuple[str, JSONObject]]) -> list[JSONObject]:
        """Calls in order of their openings, their arguments interleaved where that is readable."""
        out: list[JSONObject] = []
        rests: list[list[JSONObject]] = []
        for position, (name, arguments) in enumerate(calls):
            opening, rest = self._cut(position, name, arguments)
            out += opening
            if self.habits.interleaves and self.dice.random() < 0.7:
                rests.append(rest)
            else:
                out += rest
        while any(rests):
            out.append(self.dice.choice([rest for rest in rests if rest]).pop(0))
        return out

    def _cut(
        self, position: int, name: str, arguments: JSONObject
    ) -> tuple[list[JSONObject], list[JSONObject]]:
        """The fragments that bring a call's name, and those that bring its arguments."""
        id_ = f"call-{self.number}-{position}"
        text = json.dumps(arguments)
        if self.habits.objects or self.habits.ids == "never":
            whole = arguments if self.habits.objects else text
            return [self._fragment(position, id_, {"name": name, "arguments": whole})], []
        at = self.dice.randrange(1, len(name))
        names = [name[:at], name[at:]] if self.habits.names == "pieces" else [name]
        opening = [{"name": part, "arguments": ""} for part in names]
        cuts = sorted(self.dice.sample(range(len(text)), min(3, len(text))))
        parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        again = {"name": name} if self.habits.names == "again" else {}
        functions = [*opening, *[again | {"arguments": part} for part in parts]]
        first, *rest = [
            self._fragment(position, id_ if number == 0 else self._further_id(id_), function)
            for number, function in enumerate(functions)
        ]
        return [first, *rest[: len(names) - 1]], rest[len(names) - 1 :]

    def _further_id(self, id_: str) -> str | None:
        return {"again": id_, "null": "null", "empty": ""}.get(self.habits.ids)

    def _fragment(self, position: int, id_: str | None, function: JSONObject) -> JSONObject:
        index = {"given": position, "shared": 0}.get(self.habits.index)
        fragment: JSONObject = {} if index is None else {"index": index}
        if id_ is not None and self.habits.ids != "never":
            fragment["id"] = id_
        return fragment | {"function": function}

    def _group(self, fragments: list[JSONObject]) -> list[list[JSONObject]]:
        """One fragment per chunk, sometimes two where they cannot be confused."""
        groups: list[list[JSONObject]] = []
        for fragment in fragments:
            whole = self.habits.names == "whole" and self.habits.interleaves
            if groups and whole and self.dice.random() < 0.2:
                groups[-1].append(fragment)
            else:
                groups.append([fragment])
        return groups
