"""A request of the memory agent comes in; a deterministic stand-in for its model answers.

It knows a few ways of asking, in English, and exists so that everything around the model can be
shown and tested without one. With a real upstream it is never used.
"""

import re

import orjson

from proxy.memory.instructions import FORGET_ALL
from proxy.memory.value import slugify
from proxy.memory.writer import Errand
from proxy.stream.collect import Answer, Call
from proxy.wire import JSONObject

_KEEP = re.compile(
    r"(?:remember|keep in (?:mind|memory)|don't forget|do not forget|memori[sz]e|save|store|note)"
    r"(?: to memory| in your memory| about me| for next time)?(?: that|:|,)*\s+(?P<fact>[^.!?\n]+)",
    re.IGNORECASE,
)
_NAME = re.compile(r"\bcall me (?P<name>[\w' -]+)", re.IGNORECASE)
_FORGET = re.compile(
    r"\b(?:forget|delete|erase|remove)\b (?:that |what |about |where |my |the )*"
    r"(?P<what>[^.!?\n]+)",
    re.IGNORECASE,
)
_WIPE = re.compile(r"^\W*(?:yes|sure|ok)\b|\b(?:forget|delete|erase)\b", re.IGNORECASE)
_STATED = re.compile(
    r"^(?P<fact>[^.!?\n]{4,}?)[.,!] (?:please )?(?:remember|keep|save|note)", re.IGNORECASE
)
_PERSONAL = re.compile(r"\b(?:i|i'm|me|my|mine|we|our|us)\b", re.IGNORECASE)
_MOVED = re.compile(r"\b(?:moved to|live in) (?P<city>[A-Z][\w-]+)")
_NEWEST = "The user's newest message: "
_MEMORY = re.compile(r"^Memory \([^)]*\): (\{.*\})$", re.MULTILINE)
_FILLER = frozenset(
    [
        "i",
        "am",
        "is",
        "are",
        "my",
        "me",
        "a",
        "an",
        "the",
        "in",
        "at",
        "that",
        "and",
        "to",
        "now",
        "it's",
        "i'm",
        "have",
        "has",
    ]
)


class OfflineWriter:
    """Answers at once and in the same way every time."""

    async def complete(self, body: JSONObject, errand: Errand) -> Answer:  # noqa: ARG002 - the Protocol's
        """The calls that the message asks for."""
        messages = body["messages"]
        asked = str(next(m["content"] for m in messages if m["role"] == "user"))
        newest = orjson.loads(asked.rpartition(_NEWEST)[2])
        memory = _MEMORY.search(asked)
        kept = orjson.loads(memory[1]) if memory else {}
        done = any(message["role"] == "tool" for message in messages)
        offered = {tool["function"]["name"] for tool in body.get("tools", ())}
        calls = [] if done else _decide(newest, kept)
        if FORGET_ALL in offered and not done and _WIPE.search(newest):
            calls = [_call(FORGET_ALL, {})]
        return Answer(
            message={"role": "assistant", "content": None if calls else "done"},
            calls=calls,
            finish_reason="tool_calls" if calls else "stop",
            usage=None,
            head={"model": "standin"},
            error=None,
            complete=True,
        )


def _decide(text: str, kept: dict[str, str]) -> list[Call]:
    name = _NAME.search(text)
    if name:
        said = name["name"].split(" from ")[0].strip()
        return [_set("name", f"The user wants to be called {said}.")]
    forget = _FORGET.search(text)
    if forget and not re.search(r"don't forget|do not forget", text, re.IGNORECASE):
        wanted = _words(forget["what"])
        return [
            _call("delete_memory", {"key": k})
            for k, v in kept.items()
            if wanted & _words(v + " " + k.replace("_", " "))
        ]
    found = [match["fact"].strip() for match in (_KEEP.search(text), _STATED.search(text)) if match]
    fact = next((one for one in found if _PERSONAL.search(one)), "")
    moved = _MOVED.search(text)
    if moved:
        return [_set("home_city", f"The user lives in {moved['city']}.")]
    if not fact:
        return []
    return [_set(_name(fact), f"The user said: {fact}.")]


def _name(fact: str) -> str:
    words = [w for w in re.findall(r"\w+", fact.lower()) if w not in _FILLER]
    return slugify("_".join(words[:2])) or "fact"


def _words(text: str) -> set[str]:
    return {
        word for word in re.findall(r"\w+", text.lower()) if word not in _FILLER and len(word) > 2
    }


def _set(key: str, value: str) -> Call:
    return _call("set_memory", {"key": key, "value": value})


def _call(name: str, arguments: JSONObject) -> Call:
    text = orjson.dumps(arguments).decode()
    function = {"name": name, "arguments": text}
    call_id = f"call_{name}_{arguments.get('key', '')}"
    return Call(0, call_id, name, text, {"id": call_id, "type": "function", "function": function})
