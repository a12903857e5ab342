"""Requests that applications make for themselves."""

import pytest

from proxy.memory.auxiliary import is_auxiliary
from proxy.wire import JSON, JSONObject

OWN = (
    "### Task:\nGenerate a concise, 3-5 word title with an emoji.\n### Chat History:\nUSER: hi",
    "Create a short title for this conversation:\n<conversation>User: remember me</conversation>",
    "Suggest 3-5 relevant follow-up questions.\n### Chat History:\nUSER: hi",
    "Generate 1-3 broad tags for this chat.\n<chat_history>USER: hi</chat_history>",
)
PEOPLES = (
    "Please remember that I like short titles.",
    "Write a title for my poem about history.",
    "User: is a strange word, isn't it?",
)


@pytest.mark.item("memory/titles")
@pytest.mark.parametrize("text", OWN)
def test_titles_and_tags(text: str) -> None:
    """Open WebUI's and LibreChat's own prompts are recognised."""
    assert is_auxiliary({}, [{"role": "user", "content": text}])
    split = [{"role": "system", "content": text}, {"role": "user", "content": "User: hi"}]
    assert is_auxiliary({}, split)


@pytest.mark.parametrize("text", PEOPLES)
def test_people(text: str) -> None:
    """What people write is not."""
    assert not is_auxiliary({}, [{"role": "user", "content": text}])


def test_a_task_in_the_metadata() -> None:
    """An application that says so is believed; a conversation is never auxiliary."""
    said: list[JSONObject] = [{"role": "user", "content": "hi"}]
    assert is_auxiliary({"metadata": {"task": "title_generation"}}, said)
    assert not is_auxiliary({"metadata": {"user_id": "x"}}, said)
    assert not is_auxiliary({}, [{"role": "user", "content": OWN[0]}, *said])


@pytest.mark.parametrize("odd", [[], {}, 1, None])
def test_a_role_that_is_none(odd: JSON) -> None:
    """Is nobody's; nothing breaks."""
    assert not is_auxiliary({}, [{"role": odd, "content": OWN[0]}])
