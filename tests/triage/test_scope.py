"""What triage leaves alone."""

import orjson
import pytest

from proxy.plan.envelope import open_envelope
from proxy.triage.scope import is_compaction, reason_to_leave, reason_to_pass
from proxy.wire import JSONObject
from tests.triage.talk import converse, said, user


@pytest.mark.parametrize(("body", "reason"), [
    (b'{"messages":[]}', None),
    (b'{"input":"x"}', "no messages"),
    (b'{"messages":[],"messages":[]}', "keys"),
    (b'{"messages":[],"previous_response_id":"r"}', "native"),
    (b'{"messages":[],"context_management":[{"type":"compaction"}]}', "native"),
    (b'{"messages":[],"context_management":null}', None),
])  # fmt: skip
def test_the_outside_of_a_request(body: bytes, reason: str | None) -> None:
    """Where the provider keeps or shortens the history itself, we do not."""
    envelope = open_envelope(body)
    assert envelope is not None
    assert reason_to_pass(envelope) == reason


def test_sealed_state_is_left() -> None:
    """Encrypted items belong to the provider; the words alone mean nothing."""
    item: JSONObject = {"role": "assistant", "content": "x", "encrypted_content": "abc"}
    assert reason_to_leave(converse([user("x"), item])) == "sealed"
    quoted = orjson.dumps({"encrypted_content": "abc"}).decode()
    assert reason_to_leave(converse([user(quoted)])) is None


@pytest.mark.parametrize(("text", "asks", "makes"), [
    ("Please summarize the conversation so far.", True, False),
    ("Your task is to create a detailed summary of the conversation", True, True),
    ("You are performing a CONTEXT CHECKPOINT COMPACTION.", True, True),
    ("You are the component that summarizes internal chat history into a structure.", False, True),
    ("First, reason in a scratchpad. Then generate the <state_snapshot>.", True, True),
    ("Your sole objective is to condense the history below.", True, True),
    ("Summarize this article about whales.", False, False),
    ("What is the history of Rome?", False, False),
    ("You help people summarize long chat logs and articles.", True, False),
])  # fmt: skip
def test_requests_that_compact(text: str, asks: bool, makes: bool) -> None:
    """From the user's newest words, or a system prompt that is for nothing else."""
    assert is_compaction(converse([user("Hi"), said("Hello"), user(text)])) is asks
    system = {"role": "system", "content": text}
    assert is_compaction(converse([system, user("Hi")])) is makes
    assert not is_compaction(converse([user(text), said("Well."), user("Thanks")]))
