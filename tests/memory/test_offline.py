"""The stand-in for the writing model."""

import pytest

from proxy.memory.change import Memory, Person, Snapshot
from proxy.memory.evidence import Heard
from proxy.memory.instructions import Hint, Limits, write_messages
from proxy.memory.offline import OfflineWriter
from proxy.memory.writer import Errand
from tests.memory.scene import ALI

pytestmark = pytest.mark.anyio

KEPT = Snapshot(Person(), [Memory("job", "The user is a baker.", 5, 1, 0, 0)])


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("Please remember that I like tea.", ["set_memory"]),
        ("call me Ali from now on", ["set_memory"]),
        ("I moved to Osaka, update my location", ["set_memory"]),
        ("I own a boat. Remember that.", ["set_memory"]),
        ("Forget that I am a baker.", ["delete_memory"]),
        ("Forget my car.", []),
        ("Don't forget the units.", []),
        ("What is the time?", []),
    ],
)
async def test_a_few_ways_of_asking(text: str, calls: list[str]) -> None:
    """It stores and deletes what is plainly asked, and nothing else."""
    messages = write_messages(Heard(text), KEPT, Hint(), Limits({}, 100), None)
    answer = await OfflineWriter().complete({"messages": messages}, Errand(ALI, "r", "k"))
    assert [call.name for call in answer.calls] == calls
