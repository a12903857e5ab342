"""The messages of a request come in; what the conversation has asked for and called goes out."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from proxy.plan.chain import call_ids, read_text
from proxy.tools.predict import Cue
from proxy.wire import JSON, JSONObject

CLIP = 8_000
"""Characters of a message that prediction reads: the request of a pasted page stands before it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A user message, or tool results: a moment at which tools are predicted.

    `position` is that of the message, the last one when several results arrived.
    """

    cue: Cue
    position: int


@dataclass(frozen=True, slots=True)
class Called:
    """An assistant message; `names` are its tool calls, maybe none."""

    position: int
    names: tuple[str, ...]
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class History:
    """A conversation as a list of moments; `system` is all text that instructs the model.

    `prefill` says that the last message is the assistant's own, `legacy` that functions were
    called in the form before tools.
    """

    system: str
    events: tuple[Asked | Called, ...]
    prefill: bool
    legacy: bool

    @property
    def called(self) -> tuple[str, ...]:
        """All names that were called, in the order of their first call."""
        calls = (event.names for event in self.events if isinstance(event, Called))
        return tuple(dict.fromkeys(name for names in calls for name in names))

    @property
    def newest(self) -> Called | None:
        """The assistant's newest message."""
        calls = (event for event in reversed(self.events) if isinstance(event, Called))
        return next(calls, None)


@dataclass(slots=True)
class Surfaced:
    """The deferred tools whose schemas are sent, in the order in which they first were.

    A guess is never a discovery: `predicted` and `discovered` are kept apart. `guessed` is the
    part of `predicted` that belongs to the newest moment, whose worth this turn will show;
    `arrivals` says which message brought which names by prediction or by calling them unseen.
    """

    names: list[str] = field(default_factory=list)
    predicted: list[str] = field(default_factory=list)
    guessed: tuple[str, ...] = ()
    arrivals: dict[int, tuple[str, ...]] = field(default_factory=dict)
    discovered: list[str] = field(default_factory=list)

    def add(self, names: Iterable[str], kind: list[str] | None = None) -> tuple[str, ...]:
        """Appends those names that are not there yet, to `kind` as well, and returns them."""
        new = tuple([name for name in dict.fromkeys(names) if name not in self.names])
        self.names.extend(new)
        if kind is not None:
            kind.extend(new)
        return new


class _Reader:
    """Walks the messages once and remembers what the next cue needs."""

    def __init__(self) -> None:
        self.system: list[str] = []
        self.events: list[Asked | Called] = []
        self.users = ("", "")
        self.assistant = ""
        self.called: dict[str, None] = {}
        self.names_by_id: dict[str, str] = {}
        self.results: list[str] = []
        self.legacy = False

    def read(self, position: int, message: JSONObject) -> None:
        role = message.get("role")
        if role == "tool":
            name = self.names_by_id.get(str(message.get("tool_call_id")))
            self.results.extend([name] if name else [])
            return
        self.flush(position - 1)
        text = read_text(message.get("content"))
        if role == "user":
            self.users = (text, self.users[0])
            self.events.append(Asked(self.cue(()), position))
        elif role == "assistant":
            self.read_assistant(position, message, text)
        elif role in ("system", "developer"):
            self.system.append(text)
        elif role == "function":
            self.legacy = True

    def read_assistant(self, position: int, message: JSONObject, text: str) -> None:
        if text:
            self.assistant = text
        self.legacy = self.legacy or isinstance(message.get("function_call"), dict)
        if not message.get("tool_calls"):
            self.events.append(Called(position, (), ()))
            return
        named = _read_calls(message.get("tool_calls"))
        self.names_by_id.update(named)
        names = tuple(name for _, name in named)
        self.called.update(dict.fromkeys(names))
        self.events.append(Called(position, names, tuple(call_ids(message))))

    def flush(self, position: int) -> None:
        """Ends a run of tool results, the last of which is at `position`."""
        if self.results:
            self.events.append(Asked(self.cue(tuple(self.results)), position))
            self.results = []

    def cue(self, results: tuple[str, ...]) -> Cue:
        return Cue(
            newest_user=self.users[0][:CLIP],
            previous_user=self.users[1][:CLIP],
            last_assistant=self.assistant[:CLIP],
            called=tuple(self.called),
            results=results,
        )


def read_history(messages: Sequence[JSONObject]) -> History:
    """The moments of a conversation, in order; unknown roles are passed over."""
    reader = _Reader()
    for position, message in enumerate(messages):
        reader.read(position, message)
    reader.flush(len(messages) - 1)
    last = messages[-1].get("role") if messages else None
    return History(
        system="\n".join(reader.system),
        events=tuple(reader.events),
        prefill=last == "assistant",
        legacy=reader.legacy,
    )


def fold_surfaced(
    history: History,
    predict: Callable[[Asked], Sequence[str]],
    known: Container[str],
    discovered: Mapping[int, Sequence[str]],
) -> Surfaced:
    """Which deferred tools the conversation has surfaced so far: a pure fold, so it needs no id.

    `known` are the names that may be surfaced. `discovered` maps the position of an assistant
    message to what hidden searches had found when it was written.
    """
    surfaced = Surfaced()
    for event in history.events:
        if isinstance(event, Asked):
            surfaced.guessed = tuple(name for name in predict(event) if name in known)
            guessed = surfaced.guessed
            new = surfaced.add(guessed, surfaced.predicted) if guessed else ()
            if new:
                surfaced.arrivals[event.position] = new
        else:
            found = discovered.get(event.position, ())
            if not found and not event.names:
                continue
            surfaced.add((n for n in found if n in known), surfaced.discovered)
            called = surfaced.add(n for n in event.names if n in known)
            if called:
                surfaced.arrivals[event.position] = called
    return surfaced


def _read_calls(calls: JSON) -> list[tuple[str, str]]:
    if not isinstance(calls, list):
        return []
    named = []
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        if isinstance(name, str) and name:
            named.append((str(call.get("id")), name))
    return named
