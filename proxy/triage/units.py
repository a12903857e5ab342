"""Facts of messages come in; units with chain hashes, equal for equal histories, go out."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec
import orjson
import xxhash

from proxy.triage.array import Array
from proxy.triage.canon import Fact
from proxy.wire import JSONObject

Kind: TypeAlias = Literal["head", "step", "reply"]


class Unit(msgspec.Struct, frozen=True, gc=False):
    """A turn's head (the user's words and plain replies), a tool step, or a reply after steps.

    `positions` are its messages; `link` is the chain hash at its end; `number` counts from 1.
    """

    kind: Kind
    number: int
    turn: int
    positions: tuple[int, ...]
    link: bytes
    size: int
    complete: bool
    marked: bool


class Chain(msgspec.Struct, frozen=True):
    """What the messages of a request come to, without their bytes.

    `links` has a hash per message, `heads` are positions where requests ended and `names` their
    hashes in hex. `signed` are positions with signatures, `sealed` says that the provider keeps
    state of its own in here.
    """

    links: list[bytes] = []
    units: list[Unit] = []
    heads: list[int] = []
    names: list[str] = []
    turns: int = 0
    signed: list[int] = []
    sealed: bool = False


class Start(msgspec.Struct, frozen=True, gc=False):
    """The beginning of a chain: so many units, which end in front of a position."""

    chain: Chain = Chain()
    units: int = 0
    position: int = 0


class Conversation(msgspec.Struct, frozen=True):
    """The messages of a request. `digests` has 16 bytes for each, `lead` are system messages."""

    items: Array
    facts: Sequence[Fact]
    digests: bytes
    lead: int
    chain: Chain

    @property
    def links(self) -> Sequence[bytes]:
        """A hash per message, of everything up to it."""
        return self.chain.links

    @property
    def units(self) -> Sequence[Unit]:
        """What is kept, shortened or dropped as a whole."""
        return self.chain.units

    @property
    def heads(self) -> Sequence[int]:
        """Positions where requests ended."""
        return self.chain.heads

    @property
    def turns(self) -> int:
        """How many user turns there are."""
        return self.chain.turns

    @property
    def head(self) -> bytes:
        """The hash of everything that this request holds."""
        return self.links[-1] if self.links else b""

    @property
    def asks(self) -> bool:
        """Whether a user message is the newest."""
        return bool(self.facts) and self.facts[-1].role == "user"

    def read(self, position: int) -> JSONObject:
        """One message as an object."""
        message: JSONObject = orjson.loads(memoryview(self.items[position]))
        return message

    def steps(self) -> list[Unit]:
        """The tool steps."""
        return [unit for unit in self.units if unit.kind == "step"]

    def fingerprint(self, stop: int) -> bytes:
        """The bytes of the messages up to a position, the leading system messages left out."""
        return xxhash.xxh3_128_digest(self.digests[16 * self.lead : 16 * stop])


def start_of(chain: Chain, within: int) -> Start | None:
    """The longest beginning of whole units that so many messages decide; None without one.

    A unit ends where another begins, so the last that is seen to begin is not in.
    """
    units = bisect_right(chain.units, within - 1, key=lambda unit: unit.positions[0]) - 1
    if units < 1 or chain.sealed:
        return None
    return Start(chain, units, chain.units[units].positions[0])


def link_messages(facts: Sequence[Fact], user: bytes, known: Start) -> Chain:
    """Units and hashes. System messages belong to no unit: applications put dates there.

    What is `known` is not read again.
    """
    chain, position = known.chain, known.position
    units = chain.units[: known.units]
    links = chain.links[:position]
    heads = chain.heads[: bisect_left(chain.heads, position)]
    names = chain.names[: len(heads)]
    signed = chain.signed[: bisect_left(chain.signed, position)]
    begun = position
    link = links[-1] if links else xxhash.xxh3_128_digest(user)
    builder = _Builder(units)
    count = len(facts)
    while position < count:
        fact = facts[position]
        if fact.role == "system":
            links.append(link)
            position += 1
            continue
        stop = _end_of_results(facts, position) if fact.calls else position + 1
        many = stop - position > 2
        ordered = _in_call_order(facts, position, stop) if many else facts[position:stop]
        for each in ordered:
            link = xxhash.xxh3_128_digest(link + each.digest)
            links.append(link)
        if fact.role != "assistant" or fact.calls:
            heads.append(stop - 1)
        builder.add(facts, position, stop, link)
        position = stop
    fresh = facts[begun:]
    return Chain(
        links,
        builder.finish(),
        heads,
        [*names, *(links[head].hex() for head in heads[len(names) :])],
        builder.turn,
        [*signed, *(begun + place for place, fact in enumerate(fresh) if fact.seals)],
        any(fact.sealed for fact in fresh),
    )


class _Builder:
    """Puts messages together to units."""

    def __init__(self, units: list[Unit]) -> None:
        self.turn = units[-1].turn if units else 0
        self._units = units
        self._kind: Kind = "head"
        self._positions: list[int] = []
        self._link = b""
        self._size = 0
        self._marked = self._replied = self._odd = False

    def add(self, facts: Sequence[Fact], start: int, stop: int, link: bytes) -> None:
        """One message, or an assistant's calls with all their results."""
        fact = facts[start]
        if fact.calls:
            self._close()
            self._kind = "step"
            self._units.append(self._step(facts, start, stop, link))
            return
        if fact.role == "user":
            if self._kind != "head" or self._replied or not self._positions:
                self._close()
                self._kind, self.turn = "head", self.turn + 1
        elif not self._positions:
            self._kind = "reply"
        self._replied = self._replied or fact.role != "user"
        self._odd = self._odd or fact.role not in ("user", "assistant")
        self._positions.append(start)
        self._size += fact.size
        self._marked = self._marked or fact.marked
        self._link = link

    def finish(self) -> list[Unit]:
        """All units; the last one may still grow."""
        self._close(complete=self._replied)
        return self._units

    def _step(self, facts: Sequence[Fact], start: int, stop: int, link: bytes) -> Unit:
        held = facts[start:stop]
        return Unit(
            "step",
            len(self._units) + 1,
            self.turn,
            tuple(range(start, stop)),
            link,
            sum(fact.size for fact in held),
            _is_answered(held),
            any(fact.marked for fact in held),
        )

    def _close(self, *, complete: bool = True) -> None:
        if self._positions:
            self._units.append(
                Unit(
                    self._kind,
                    len(self._units) + 1,
                    self.turn,
                    tuple(self._positions),
                    self._link,
                    self._size,
                    complete and not self._odd,
                    self._marked,
                )
            )
        self._positions = []
        self._size, self._marked, self._replied, self._odd = 0, False, False, False


def _end_of_results(facts: Sequence[Fact], start: int) -> int:
    stop = start + 1
    while stop < len(facts) and facts[stop].role == "tool":
        stop += 1
    return stop


def _in_call_order(facts: Sequence[Fact], start: int, stop: int) -> list[Fact]:
    """An assistant's message and its results as the calls stand: clients answer in any order."""
    places = {call: place for place, call in enumerate(reversed(facts[start].calls))}
    last = len(places)
    results = sorted(facts[start + 1 : stop], key=lambda f: -places.get(f.answers or "", last))
    return [facts[start], *results]


def _is_answered(step: Sequence[Fact]) -> bool:
    """Whether each call has exactly one result and each result a call."""
    answers = [fact.answers for fact in step[1:]]
    calls = step[0].calls
    if len(calls) == len(answers) == 1:
        return calls[0] == answers[0]
    return len(set(calls)) == len(calls) == len(answers) and set(answers) == set(calls)
