"""Tool call fragments of the upstream come in; those that the client may see go out renumbered."""

from collections.abc import Container, Iterable, Sequence

from proxy.stream.calls import (
    Call,
    OpenCall,
    call_object,
    read_arguments,
    read_id,
    read_name,
    read_type,
)
from proxy.wire import JSONObject

_OWN = frozenset({"index", "id", "type", "function", "custom"})


class Router:
    """Decides for each call of a stream whether it goes out live, and under which index.

    A call is decided once its name is complete: when arguments begin, when another call starts,
    when the round ends, or before that when the name is visible and no known name goes on where
    it stops. Until then, and for ever when its name is not visible, nothing of it goes out.
    """

    def __init__(self) -> None:
        self.shown = 0
        self.held: list[OpenCall] = []
        self._visible: Container[str] = ()
        self._names: tuple[str, ...] = ()
        self._live: dict[OpenCall, int] = {}
        self._waiting: list[OpenCall] = []
        self._whole: set[OpenCall] = set()
        """Calls whose opening holds all that this chunk says of them."""

    def start_round(self, visible: Container[str], names: Iterable[str] = ()) -> None:
        """`names`: further ones that the model may call, if the caller knows them."""
        self._visible = visible
        listed = tuple(visible) if isinstance(visible, Iterable) else ()
        self._names = (*listed, *names)
        self.held.clear()
        self._live.clear()
        self._waiting.clear()

    def index_of(self, call: OpenCall) -> int | None:
        """The index under which a call streams live."""
        return self._live.get(call)

    def show(self, pairs: Sequence[tuple[OpenCall, JSONObject]]) -> list[JSONObject]:
        """The fragments that go out for those that came in: the same objects if nothing changes."""
        shown: list[JSONObject] = []
        self._whole.clear()
        for call, fragment in pairs:
            if call in self._whole or call in self.held:
                continue
            if call in self._live:
                shown.append(_continue(call, fragment, self._live[call]))
            else:
                shown += self._settle(call)
                shown += self._decide(call, fragment)
        return shown

    def close(self) -> list[JSONObject]:
        """The openings of calls that were still waiting when the round ended."""
        return self._settle(None)

    def release(self, call: Call) -> JSONObject:
        """A whole call as one fragment, under the next index."""
        kind = read_type(call.raw) or "function"
        extras = {key: value for key, value in call.raw.items() if key not in _OWN}
        index = self._take_index()
        return {"index": index} | call_object(kind, call.id, call.name, call.arguments) | extras

    def _settle(self, but: OpenCall | None) -> list[JSONObject]:
        """Decide the waiting calls: another one, or the end, shows that their names are whole."""
        done = [call for call in self._waiting if call is not but]
        self._waiting = [call for call in self._waiting if call is but]
        return [opening for call in done for opening in self._open(call)]

    def _decide(self, call: OpenCall, fragment: JSONObject) -> list[JSONObject]:
        if not call.pieces and not self._is_complete(call.name):
            if call not in self._waiting:
                self._waiting.append(call)
            return []
        if call in self._waiting:
            self._waiting.remove(call)
            return self._open(call)
        opening = self._open(call)
        if opening and _is_opening(call, fragment, self._live[call]):
            self._whole.remove(call)
            return [fragment]
        return opening

    def _is_complete(self, name: str) -> bool:
        longer = (other for other in self._names if other.startswith(name) and other != name)
        return name in self._names and not any(longer)

    def _open(self, call: OpenCall) -> list[JSONObject]:
        if call.name not in self._visible:
            self.held.append(call)
            return []
        self._live[call] = self._take_index()
        self._whole.add(call)
        return [{"index": self._live[call]} | call.object()]

    def _take_index(self) -> int:
        self.shown += 1
        return self.shown - 1


def _is_opening(call: OpenCall, fragment: JSONObject, index: int) -> bool:
    """Whether a call's first fragment can go out as it came."""
    return (
        fragment.get("index") == index
        and read_id(fragment) == call.id
        and _has_text_arguments(fragment)
    )


def _continue(call: OpenCall, fragment: JSONObject, index: int) -> JSONObject:
    """A further fragment of a live call: clients append whatever is in it, so only what is new."""
    clean = not fragment.get("id") and not read_name(fragment) and _has_text_arguments(fragment)
    if clean and fragment.get("index") == index:
        return fragment
    further = {key: value for key, value in fragment.items() if key not in _OWN}
    text = read_arguments(fragment)
    if text:
        key, field = ("custom", "input") if call.type == "custom" else ("function", "arguments")
        further = {key: {field: text}} | further
    return {"index": index} | further


def _has_text_arguments(fragment: JSONObject) -> bool:
    payload = fragment.get("function") or fragment.get("custom") or {}
    value = payload.get("arguments", payload.get("input")) if isinstance(payload, dict) else None
    return value is None or isinstance(value, str)
