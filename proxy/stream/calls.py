"""Fragments of tool calls come in as providers send them; whole calls go out.

Only `index` is required of a fragment, and not every provider sends even that: indices are missing
or shared by two calls, ids are repeated, empty or the word "null", names arrive in pieces, twice
or in front of every piece of arguments, arguments arrive as objects.
"""

from dataclasses import dataclass, field

from xxhash import xxh3_64_hexdigest

from proxy.stream.chunk import dump, load_object
from proxy.wire import JSON, JSONObject

_NO_ID = frozenset({"", "null", "None"})


@dataclass(slots=True)
class Call:
    """One call of a finished round; `raw` is the tool_call object that a history would hold."""

    index: int
    id: str
    name: str
    arguments: str
    raw: JSONObject


@dataclass(slots=True, eq=False)
class OpenCall:
    """A call while its fragments arrive; two of them are equal only when they are the same one."""

    index: int
    seed: str
    id: str = ""
    type: str = "function"
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    extras: JSONObject = field(default_factory=dict)

    @property
    def arguments(self) -> str:
        return join_text(self.pieces)

    def fix_id(self) -> str:
        """The id; one made from the seed when the provider sent none, then always the same."""
        self.id = self.id or made_id(self.seed, self.name)
        return self.id

    def grow(self, fragment: JSONObject) -> None:
        """Take over what the fragment adds."""
        self.id = self.id or read_id(fragment)
        self.type = read_type(fragment) or self.type
        name = read_name(fragment)
        if not self.pieces:
            # A name that repeats what is there is a repetition, else it is the next piece.
            self.name = name if name.startswith(self.name) else self.name + name
        text = read_arguments(fragment)
        if text:
            self.pieces.append(text)
        for key, value in fragment.items():
            if key not in {"index", "id", "type", "function", "custom"} and value is not None:
                self.extras[key] = extend(self.extras.get(key), value)

    def object(self) -> JSONObject:
        """The whole call as a message holds it."""
        return call_object(self.type, self.fix_id(), self.name, self.arguments) | self.extras


class CallAssembler:
    """Finds the call that each fragment of one round belongs to."""

    def __init__(self) -> None:
        self.calls: list[OpenCall] = []

    def add(self, fragments: JSON, seed: str) -> list[tuple[OpenCall, JSONObject]]:
        """The fragments of one chunk, each with its call, which has already grown by it."""
        pairs: list[tuple[OpenCall, JSONObject]] = []
        for fragment in fragments if isinstance(fragments, list) else ():
            if not isinstance(fragment, dict):
                continue
            call = self._find(fragment, [known for known, _ in pairs])
            if call is None:
                call = OpenCall(self._index(fragment), f"{seed}/{len(self.calls)}")
                self.calls.append(call)
            call.grow(fragment)
            pairs.append((call, fragment))
        return pairs

    def latest(self, index: int) -> OpenCall | None:
        """The call that a further piece under this index belongs to."""
        return next((call for call in reversed(self.calls) if call.index == index), None)

    def _index(self, fragment: JSONObject) -> int:
        index = fragment.get("index")
        return index if isinstance(index, int) else len(self.calls)

    def _find(self, fragment: JSONObject, touched: list[OpenCall]) -> OpenCall | None:
        index, id_ = fragment.get("index"), read_id(fragment)
        calls = self.calls
        if isinstance(index, int):
            calls = [call for call in calls if call.index == index]
        if not calls:
            return None
        known = [call for call in calls if id_ and call.id == id_]
        call = (known or calls)[-1]
        return None if _starts_anew(call, fragment, call in touched) else call


def _starts_anew(call: OpenCall, fragment: JSONObject, touched: bool) -> bool:
    """Whether a fragment addressed to `call` opens another one; `touched`: in the same chunk."""
    id_, name = read_id(fragment), read_name(fragment)
    if id_ and call.id and id_ != call.id:
        return bool(name) or not read_arguments(fragment)
    if not name:
        return False
    if touched or not call.pieces:
        return touched
    same = bool(id_) and id_ == call.id
    if name != call.name:
        return not same or _is_whole(call)
    return not same and bool(read_arguments(fragment)) and _is_whole(call)


def _is_whole(call: OpenCall) -> bool:
    return load_object(call.arguments) is not None


def made_id(seed: str, name: str) -> str:
    """An id for a call that came without; the same for the same seed."""
    return f"call_{xxh3_64_hexdigest(f'{seed}/{name}'.encode(errors='replace'))}"


def call_object(type_: str, id_: str, name: str, arguments: str) -> JSONObject:
    """A tool_call object of either type."""
    if type_ == "custom":
        return {"id": id_, "type": type_, "custom": {"name": name, "input": arguments}}
    return {"id": id_, "type": type_, "function": {"name": name, "arguments": arguments}}


def read_id(call: JSONObject) -> str:
    """The id, or "" for everything that is none."""
    value = call.get("id")
    return value if isinstance(value, str) and value not in _NO_ID else ""


def read_type(call: JSONObject) -> str:
    """The type, or "" when the fragment does not tell."""
    value = "custom" if "custom" in call else call.get("type")
    return value if isinstance(value, str) else ""


def read_name(call: JSONObject) -> str:
    value = _payload(call).get("name")
    return value if isinstance(value, str) else ""


def read_arguments(call: JSONObject) -> str:
    """The arguments, or the piece of them, as the text that the protocol wants."""
    payload = _payload(call)
    value = payload.get("arguments") if "arguments" in payload else payload.get("input")
    if value is None:
        return ""
    return value if isinstance(value, str) else dump(value).decode()


def _payload(call: JSONObject) -> JSONObject:
    value = call.get("function") or call.get("custom")
    return value if isinstance(value, dict) else {}


def extend(earlier: JSON, value: JSON) -> JSON:
    """A field that arrives in parts: texts and lists grow, of anything else the last one wins."""
    if isinstance(earlier, str) and isinstance(value, str):
        return earlier + value
    if isinstance(earlier, list) and isinstance(value, list):
        return [*earlier, *value]
    return value


def join_text(pieces: list[str]) -> str:
    """The joined pieces; an emoji whose surrogate halves arrived apart is put together."""
    text = "".join(pieces)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
