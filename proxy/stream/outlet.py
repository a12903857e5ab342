"""Events for the client come in with the text they show; what it gets now goes out."""


class Outlet:
    """The last gate of a client stream.

    Events that show nothing wait for one that does; until then nothing is `started`. With
    `hold_text`, events with text wait until `open` and are forgotten when a new round starts.
    """

    def __init__(self, *, hold_text: bool) -> None:
        self.started = False
        self.gap = False
        """The client saw text of an earlier round that doesn't end in whitespace."""
        self._hold_text = hold_text
        self._holding = hold_text
        self._lead: list[bytes] = []
        self._held: list[tuple[bytes, str]] = []
        self._said: list[str] = []

    @property
    def text(self) -> str:
        """All that the client has read."""
        return "".join(self._said)

    def start_round(self) -> None:
        self._held.clear()
        self._holding = self._hold_text
        self.gap = bool(self._said) and not self._said[-1][-1].isspace()

    def send(self, wire: bytes, text: str, shows: bool) -> bytes:
        """`text` is what `wire` adds to the reply; `shows`, whether there is anything to see."""
        if text:
            if self._holding:
                self._held.append((wire, text))
                return b""
            self._said.append(text)
        if self.started:
            return wire
        self._lead.append(wire)
        if not shows:
            return b""
        self.started = True
        return b"".join(self._lead)

    def open(self) -> bytes:
        """The text that was held in this round, which is known to be visible from now on."""
        self._holding = False
        held, self._held = self._held, []
        return b"".join([self.send(wire, text, shows=True) for wire, text in held])
