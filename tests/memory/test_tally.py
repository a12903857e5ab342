"""Runs of the memory agent are counted by what came of them."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from proxy.memory.agent import Run
from proxy.memory.change import Kind, Outcome
from proxy.memory.tally import RunOutcome, outcome_of
from tests.fakes.until import until
from tests.memory.scene import answer, open_scene, read, set_memory

pytestmark = pytest.mark.anyio

ASK = "Remember that I live in Rome."
ROME = set_memory("city", "The user lives in Rome.")


@pytest.mark.parametrize(
    ("kinds", "failure", "outcome"),
    [
        (("update",), None, "changed"),
        (("reject", "pending", "delete"), None, "changed"),
        (("reject", "pending"), None, "pending"),
        (("reject",), None, "refused"),
        (("error", "unchanged"), None, "refused"),
        (("stale",), None, "refused"),
        (("unchanged", "missing"), None, "nothing"),
        ((), None, "nothing"),
        ((), "timeout", "timeout"),
        ((), "upstream_timeout", "timeout"),
        (("update",), "timeout", "timeout"),
        (("reject",), "too_many_calls", "too_many_calls"),
        ((), "aborted", "aborted"),
        ((), "unavailable", "unavailable"),
        ((), "http_503", "failed"),
        ((), "malformed", "failed"),
    ],
)
def test_one_word_for_each(
    kinds: tuple[Kind, ...], failure: str | None, outcome: RunOutcome
) -> None:
    """What went wrong, or the most that was done; never a provider's words."""
    changes = tuple(Outcome(kind, "city") for kind in kinds)
    assert outcome_of(Run(changes, 1, failure)) == outcome


async def test_runs_that_end_well(tmp_path: Path) -> None:
    """A change, nothing to do, and a value that the user never said; a skipped one is no run."""
    made_up = answer(set_memory("pet", "The user has a zebra."))
    async with open_scene(tmp_path, answer(ROME), answer(), made_up) as scene:
        await read(await scene.say(ASK))
        assert scene.runs() == {"changed": 1}
        await read(await scene.say("Remember? No, never mind."))
        await scene.settled()
        assert scene.runs() == {"changed": 1, "nothing": 1}
        await read(await scene.say("Remember my animal."))
        await read(await scene.say("It is sunny."))
        await scene.settled()
        assert scene.runs() == {"changed": 1, "nothing": 1, "refused": 1}


@pytest.mark.parametrize(("failure", "outcome"), [("http_503", "failed"), ("timeout", "timeout")])
async def test_a_model_that_does_not_answer(tmp_path: Path, failure: str, outcome: str) -> None:
    """It is counted once, and apart from a run that had nothing to do."""
    async with open_scene(tmp_path, failure) as scene:
        await read(await scene.say(ASK))
        await scene.settled()
        assert scene.runs() == {outcome: 1}


async def test_a_store_that_fails(tmp_path: Path) -> None:
    """The run itself was fine; nothing could be kept."""
    async with open_scene(tmp_path, answer(ROME)) as scene:
        with sqlite3.connect(tmp_path / "memory.db") as connection:
            connection.execute(
                "CREATE TRIGGER full BEFORE INSERT ON usher_memory_events"
                " BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END"
            )
        connection.close()
        await read(await scene.say(ASK))
        await scene.settled()
        assert scene.runs() == {"unavailable": 1}


async def test_a_run_that_is_broken_off(tmp_path: Path) -> None:
    """The gateway ends before the model has answered."""
    async with open_scene(tmp_path, answer(ROME), join_ms=0) as scene:
        scene.writer.wait = asyncio.Event()
        await read(await scene.say(ASK))
        await until(lambda: bool(scene.writer.asked))
        await scene.background.drain(0)
        assert scene.runs() == {"aborted": 1}


async def test_what_is_not_begun(tmp_path: Path) -> None:
    """Too many at once, and too many in a minute while nobody judges."""
    async with open_scene(
        tmp_path, answer(ROME), queue=1, join_ms=0, gate=lambda _: None, runs_per_minute=1
    ) as scene:
        scene.writer.wait = asyncio.Event()
        await read(await scene.say(ASK))
        await read(await scene.say("Remember my dog."))
        scene.writer.wait.set()
        await scene.settled()
        await read(await scene.say("Remember my cat."))
        await scene.settled()
        assert scene.runs() == {"changed": 1, "busy": 1, "rate_limited": 1}
