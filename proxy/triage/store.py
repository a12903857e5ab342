"""Conversations come in; plans and how requests went up are found under their hashes, or kept."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec
import orjson

from proxy.state.memory import Store
from proxy.triage.plan import Plan, Sent, decode_plan, decode_sent
from proxy.triage.units import Conversation
from proxy.wire import JSON, JSONObject

_ENCODE = msgspec.json.Encoder().encode
_MOST_DECODED = 512
_FIRST_LOOK = 8
"""Places that are looked up at once, the newest first: a plan is rarely far back. Then more."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a conversation before its plan is looked for.

    Whether there are plans where it begins, how earlier requests went up, and what its signed
    blocks were made from.
    """

    rooted: bool = False
    sent: Mapping[bytes, Sent] = field(default_factory=dict)
    states: Mapping[bytes, str] = field(default_factory=dict)


class Plans:
    """The plans of all conversations; their loss costs tokens, never an answer.

    `space` keeps plans that are in force apart from those of observe mode.
    """

    def __init__(self, store: Store, space: str = "plan") -> None:
        self._store = store
        self._space = f"triage:{space}"
        self._decoded: OrderedDict[bytes, Plan | None] = OrderedDict()

    async def find(
        self, tenant: str, conversation: Conversation, *, rooted: bool = False
    ) -> Plan | None:
        """The plan with the longest history that is a beginning of this one."""
        if not (rooted or (await self.look(tenant, conversation, ())).rooted):
            return None
        names = conversation.chain.names
        stop, size = len(names), _FIRST_LOOK
        while stop > 0:
            keys = [f"{self._space}:{name}" for name in reversed(names[max(0, stop - size) : stop])]
            found = await self._store.get_many(tenant, keys)
            plans = (self._decode(found[key]) for key in keys if key in found)
            plan = next((plan for plan in plans if plan is not None), None)
            if plan is not None:
                return plan
            stop, size = stop - size, size * 4
        return None

    async def get(self, tenant: str, anchor: str) -> Plan | None:
        """The plan of one anchor."""
        value = await self._store.get(tenant, f"{self._space}:{anchor}")
        return None if value is None else self._decode(value)

    async def commit(self, tenant: str, conversation: Conversation, plan: Plan) -> Plan:
        """Keeps a plan unless there is one for this conversation; the one that holds.

        Where the conversation begins it says that there are plans, so that the many others are
        looked up with one key.
        """
        value = plan.encode()
        kept = await self._store.put_if_absent(tenant, f"{self._space}:{plan.anchor}", value)
        root = conversation.chain.names[0] if conversation.chain.names else plan.anchor
        await self._store.put(tenant, f"{self._space}:root:{root}", b"1")
        return plan if kept == value else self._decode(kept) or plan

    async def look(
        self, tenant: str, conversation: Conversation, links: Iterable[bytes], family: str = ""
    ) -> Seen:
        """What is known of a conversation, and of the requests that ended at `links`; one trip.

        Of signed blocks only those that models of the `family` have made.
        """
        names, facts = conversation.chain.names, conversation.facts
        root = f"{self._space}:root:{names[0]}" if names else None
        keys = {f"triage:sent:{link.hex()}": link for link in links}
        seals = {
            f"triage:made:{seal.hex()}": seal
            for position in conversation.chain.signed
            for seal in facts[position].seals
        }
        wanted = [*([root] if root else ()), *keys, *seals]
        found = await self._store.get_many(tenant, wanted)
        if not found:
            return Seen()
        decoded = {keys[key]: decode_sent(value) for key, value in found.items() if key in keys}
        made = {seals[key]: value.decode() for key, value in found.items() if key in seals}
        mine = f"{family}:"
        return Seen(
            root in found,
            {link: sent for link, sent in decoded.items() if sent is not None},
            {seal: by[len(mine) :] for seal, by in made.items() if by.startswith(mine)},
        )

    async def note(self, tenant: str, link: bytes, sent: Sent) -> None:
        """Keeps how a request went up."""
        key = f"triage:sent:{link.hex()}"
        await self._store.put(tenant, key, _ENCODE(sent))

    async def made(self, tenant: str, seal: bytes, state: str, family: str = "") -> None:
        """Keeps what a signed block was made from, and by what models."""
        await self._store.put(tenant, f"triage:made:{seal.hex()}", f"{family}:{state}".encode())

    async def pin(self, tenant: str, link: bytes) -> None:
        """Keeps that the user message at a link asks to have something remembered."""
        await self._store.put(tenant, f"triage:pin:{link.hex()}", b"1")

    async def pinned(self, tenant: str, conversation: Conversation) -> frozenset[int]:
        """Positions of the messages for which `pin` was called."""
        links, facts = conversation.links, conversation.facts
        users = [position for position, fact in enumerate(facts) if fact.role == "user"]
        keys = {f"triage:pin:{links[position].hex()}": position for position in users}
        found = await self._store.get_many(tenant, list(keys))
        return frozenset(keys[key] for key in found)

    async def audit(self, tenant: str, request_id: str, entry: JSONObject) -> None:
        """Keeps what was decided after a request, for whoever asks why."""
        await self._store.put(tenant, f"triage:audit:{request_id}", orjson.dumps(entry))

    async def explain(self, tenant: str, request_id: str) -> JSON:
        """What `audit` kept, or None."""
        value = await self._store.get(tenant, f"triage:audit:{request_id}")
        return None if value is None else orjson.loads(value)

    def _decode(self, value: bytes) -> Plan | None:
        if value not in self._decoded:
            self._decoded[value] = decode_plan(value)
            if len(self._decoded) > _MOST_DECODED:
                self._decoded.popitem(last=False)
        return self._decoded[value]
