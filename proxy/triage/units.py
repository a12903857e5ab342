"""A raw message array comes in; units with chain hashes, equal for equal histories, go out."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Literal, TypeAlias, TypeVar

import msgspec
import orjson
import xxhash

from proxy.triage.canon import Fact, read_fact
from proxy.wire import JSONObject

Kind: TypeAlias = Literal["head", "step", "reply"]

_T = TypeVar("_T")
_MOST_TRIES = 8
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


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

    links: Sequence[bytes] = ()
    units: Sequence[Unit] = ()
    heads: Sequence[int] = ()
    names: Sequence[str] = ()
    turns: int = 0
    signed: Sequence[int] = ()
    sealed: bool = False


class Conversation(msgspec.Struct, frozen=True):
    """The messages of a request. `digests` has 16 bytes for each, `lead` are system messages."""

    items: Sequence[msgspec.Raw]
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


class Facts:
    """Facts of messages by their bytes, and chains by those of whole histories.

    A client sends every old message again and again. The tenant seeds the keys, so nobody can find
    out what another one has sent.
    """

    def __init__(self, most: int = 16_384, most_chains: int = 512) -> None:
        self._most = most
        self._most_chains = most_chains
        self._known: OrderedDict[bytes, Fact] = OrderedDict()
        self._chains: OrderedDict[bytes, Chain] = OrderedDict()

    def read(self, items: Sequence[msgspec.Raw], tenant: str) -> tuple[list[Fact], bytes] | None:
        """A fact per message, and the digests of all; None when one of them is no message."""
        seed = xxhash.xxh3_64_intdigest(tenant.encode())
        digest = xxhash.xxh3_128_digest
        keys = [digest(item, seed) for item in items]
        facts = [fact for fact in map(self._known.get, keys) if fact is not None]
        if len(facts) < len(keys):
            facts = []
            for key, item in zip(keys, items, strict=True):
                fact = self._known.get(key) or read_fact(bytes(item))
                if fact is None:
                    return None
                _keep(self._known, key, fact, self._most)
                facts.append(fact)
        return facts, b"".join(keys)

    def find(self, conversation: Conversation, user: bytes) -> Chain:
        """The chain of the longest known beginning that was a whole request; maybe an empty one."""
        facts = conversation.facts
        tries = 0
        for position in range(len(facts) - 1, -1, -1):
            last = position == len(facts) - 1 or facts[position + 1].role == "assistant"
            if last and facts[position].role in {"user", "tool"}:
                chain = self._chains.get(_name(conversation, position + 1, user))
                tries += 1
                if chain is not None or tries == _MOST_TRIES:
                    return chain or Chain()
        return Chain()

    def keep(self, conversation: Conversation, user: bytes) -> None:
        """Remembers the chain of a whole request."""
        name = _name(conversation, len(conversation.items), user)
        _keep(self._chains, name, conversation.chain, self._most_chains)


def read_conversation(
    raw: bytes | memoryview, facts: Facts, tenant: str, user: str | None
) -> Conversation | None:
    """The conversation in a `messages` value; None when it is none that we understand."""
    try:
        items = _ITEMS.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    known = facts.read(items, tenant)
    if known is None:
        return None
    found, digests = known
    lead = next((p for p, fact in enumerate(found) if fact.role != "system"), len(found))
    bare = Conversation(items, found, digests, lead, Chain())
    who = (user or "").encode()
    chain = link_messages(found, who, facts.find(bare, who))
    conversation = Conversation(items, found, digests, lead, chain)
    facts.keep(conversation, who)
    return conversation


def _name(conversation: Conversation, stop: int, user: bytes) -> bytes:
    return conversation.fingerprint(stop) + b"%d " % conversation.lead + user


def _keep(book: OrderedDict[bytes, _T], key: bytes, value: _T, most: int) -> None:
    book[key] = value
    if len(book) > most:
        book.popitem(last=False)


def link_messages(facts: Sequence[Fact], user: bytes, known: Chain) -> Chain:
    """Units and hashes. System messages belong to no unit: applications put dates there.

    `known` is the chain of a beginning; its last unit may have grown, so that is read again.
    """
    units = list(known.units[:-1])
    position = known.units[-1].positions[0] if known.units else 0
    links = list(known.links[:position])
    heads = [head for head in known.heads if head < position]
    names = known.names[: len(heads)]
    signed = [place for place in known.signed if place < position]
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
        known.sealed or any(fact.sealed for fact in fresh),
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
            self._take(facts, start, stop, link)
            self._close(complete=_is_answered(facts, start, stop))
            return
        if fact.role == "user":
            if self._kind != "head" or self._replied or not self._positions:
                self._close()
                self._kind, self.turn = "head", self.turn + 1
        elif not self._positions:
            self._kind = "reply"
        self._replied = self._replied or fact.role != "user"
        self._odd = self._odd or fact.role not in ("user", "assistant")
        self._take(facts, start, stop, link)

    def finish(self) -> list[Unit]:
        """All units; the last one may still grow."""
        self._close(complete=self._replied)
        return self._units

    def _take(self, facts: Sequence[Fact], start: int, stop: int, link: bytes) -> None:
        for position in range(start, stop):
            if facts[position].role != "system":
                self._positions.append(position)
                self._size += facts[position].size
                self._marked = self._marked or facts[position].marked
        self._link = link

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


def _is_answered(facts: Sequence[Fact], start: int, stop: int) -> bool:
    """Whether each call has exactly one result and each result a call."""
    answers = [facts[position].answers for position in range(start + 1, stop)]
    calls = facts[start].calls
    return len(set(calls)) == len(calls) == len(answers) and set(answers) == set(calls)
