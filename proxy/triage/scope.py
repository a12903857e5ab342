"""A request comes in; why triage leaves it alone, if it does, goes out."""

from proxy.plan.envelope import Envelope
from proxy.triage.units import Conversation

NATIVE = ("previous_response_id", "context_management", "conversation")
"""Parameters with which the provider keeps or shortens the history itself."""


def reason_to_pass(envelope: Envelope) -> str | None:
    """What about the outside of a request keeps triage away from it."""
    if "messages" not in envelope:
        return "no messages"
    if not envelope.spliceable:
        return "keys"
    if any(name in envelope and envelope.get(name) is not None for name in NATIVE):
        return "native"
    return None


def reason_to_leave(conversation: Conversation) -> str | None:
    """What about the messages keeps triage away: the provider's own sealed state."""
    return "sealed" if conversation.chain.sealed else None


def is_compaction(conversation: Conversation) -> bool:
    """Whether an agent asks to have the conversation shortened, for which it needs all of it."""
    facts = conversation.facts
    newest = next((fact for fact in reversed(facts) if fact.role == "user"), None)
    if newest is not None and newest.compacts:
        return True
    return bool(facts) and facts[0].role == "system" and facts[0].compacts
