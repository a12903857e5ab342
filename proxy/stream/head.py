"""Chunks of several rounds come in; they go out with one id, created, model, fingerprint, tier."""

from itertools import takewhile

from proxy.stream.chunk import TextChunk, dump, load
from proxy.wire import JSON, JSONObject

FIELDS = ("id", "created", "model", "system_fingerprint", "service_tier")


def read_head(chunk: JSONObject) -> tuple[JSON, ...]:
    get = chunk.get
    return get("id"), get("created"), get("model"), get("system_fingerprint"), get("service_tier")


def note_head(head: JSONObject, chunk: JSONObject) -> None:
    """Keep the first real value of each field: Azure opens with an empty id and model."""
    for name in FIELDS:
        value = chunk.get(name)
        if value and not head.get(name):
            head[name] = value


class Head:
    """The fields that stay the same over a whole client stream; the first values win.

    Most chunks of a round begin with the same bytes. Once one of them was read and stamped, the
    others get their new beginning without being parsed.
    """

    def __init__(self) -> None:
        self.values: JSONObject = {}
        self._known: tuple[JSON, ...] | None = None
        self._edits: JSONObject = {}
        self._old = self._new = b""

    def chunk(self) -> JSONObject:
        """The beginning of a chunk of our own."""
        values = self.values
        first = {"id": values.get("id"), "object": "chat.completion.chunk"}
        return first | {"created": values.get("created"), "model": values.get("model")} | values

    def stamp(self, chunk: JSONObject, data: bytes) -> bool:
        """Set the fields in `chunk`, read from `data`; true when that changed it."""
        head = read_head(chunk)
        if head != self._known:
            self._meet(head, chunk, data)
        chunk.update(self._edits)
        return bool(self._edits)

    def rewrite(self, chunk: TextChunk, data: bytes) -> bytes | None:
        """`data` with the constant head, itself when it has that; None when it must be parsed."""
        head = (
            chunk.id,
            chunk.created,
            chunk.model,
            chunk.system_fingerprint,
            chunk.service_tier,
        )
        if head != self._known:
            return None
        if not self._old:
            return data
        return self._new + data[len(self._old) :] if data.startswith(self._old) else None

    def _meet(self, head: tuple[JSON, ...], chunk: JSONObject, data: bytes) -> None:
        """Find out what has to change in chunks that begin like this one."""
        note_head(self.values, chunk)
        self._edits = {
            name: self.values[name]
            for name, value in zip(FIELDS, head, strict=True)
            if name in chunk and self.values.get(name, value) != value
        }
        self._known = head
        self._old = self._new = b""
        if not self._edits:
            return
        front = {key: chunk[key] for key in takewhile(lambda key: key != "choices", chunk)}
        old = data[: data.find(b'"choices"')]
        if self._edits.keys() <= front.keys() and load(old.rstrip(b", \n") + b"}") == front:
            self._old = old
            self._new = dump(front | self._edits)[:-1] + b","
        else:
            self._known = None
