"""What people really write, read by the built-in gate and done by the stand-in agent."""

from pathlib import Path

import pytest

from proxy.memory.change import Origin, Store
from proxy.memory.gate.model import load_meaning
from proxy.memory.offline import OfflineWriter
from proxy.wire import JSONObject
from tests.memory.scene import ALI, header, open_scene, read

pytestmark = pytest.mark.anyio

OFFER = "Would you like me to remember that you use Neovim?"
OTHER = "Should I send the e-mail?"


def assistant(text: str) -> JSONObject:
    return {"role": "assistant", "content": text}


@pytest.mark.item("memory/yes-elsewhere")
@pytest.mark.parametrize(
    ("said", "status"),
    [
        pytest.param(["I use Neovim.", assistant(OFFER), "yes please"], "pass", id="yes-offer"),
        pytest.param(["Mail Ann.", assistant(OTHER), "yes please"], "skip", id="yes-other"),
        pytest.param(["What do you remember about me?"], "skip", id="asks-what-is-stored"),
        pytest.param(["Do you remember my dog's name?"], "skip", id="asks-for-one"),
        pytest.param(["I prefer answers in Japanese from now on"], "skip", id="states"),
        pytest.param(["Forget everything about me."], "pass", id="everything"),
    ],
)
async def test_what_is_a_request(said: list[JSONObject | str], status: str, tmp_path: Path) -> None:
    """A yes to an offer is, a yes to another question is not, nor is a question or a statement."""
    async with open_scene(tmp_path, gate=load_meaning(), note_ms=5_000) as scene:
        assert header(await scene.say(*said)) == status
        await scene.settled()


@pytest.mark.item("memory/forget-it")
@pytest.mark.parametrize("text", ["Forget it, let's talk about lunch.", "oh, forget it"])
async def test_forget_it_forgets_nothing(text: str, tmp_path: Path) -> None:
    """The idiom may pass a gate that would rather ask once too often; nothing is deleted."""
    async with open_scene(tmp_path, gate=load_meaning(), writer=OfflineWriter()) as scene:
        await scene.bank.change(ALI, [Store("city", "The user lives in Rome.", 6)], Origin())
        await read(await scene.say(text))
        await scene.settled()
        assert await scene.values() == {"city": "The user lives in Rome."}


@pytest.mark.item("memory/other-task")
async def test_a_request_beside_another_task(tmp_path: Path) -> None:
    """What is asked for in passing is stored, and the rest of the message stays the model's."""
    text = "What is the weather in Rome? Oh, and please remember that I live there."
    async with open_scene(tmp_path, gate=load_meaning(), writer=OfflineWriter()) as scene:
        await read(await scene.say(text))
        await scene.settled()
        assert list(await scene.values()) == ["live_there"]
        assert text in scene.upstream[0]["messages"][-1]["content"]
