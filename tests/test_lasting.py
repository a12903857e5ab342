"""What lasts is opened once and ended in order; what it was made with cannot change."""

import asyncio
from pathlib import Path

import pytest

from proxy.errors import ConfigError
from proxy.keys.issue import new_key
from proxy.lasting import FIXED, live, open_lasting
from proxy.settings import Settings

pytestmark = pytest.mark.anyio


def test_every_fixed_name_is_a_setting() -> None:
    """A section, or one of its settings."""
    for name in FIXED:
        section, _, key = name.partition(".")
        assert section in Settings.model_fields
        assert not key or key in type(getattr(Settings(), section)).model_fields


def test_the_handbook_names_them() -> None:
    """Whoever changes one of them should know before that it needs a restart."""
    page = (Path(__file__).parents[1] / "docs" / "configuration.md").read_text()
    listed = page.split("only count at a start")[1].split("needs_a_restart")[0]
    assert [name for name in (*FIXED, "memory.mode") if f"`{name}`" not in listed] == []


@pytest.mark.parametrize(("mode", "fixed"), [("off", True), ("on", False)])
def test_memory_is_switched_on_by_a_start(tmp_path: Path, mode: str, *, fixed: bool) -> None:
    """Its database is opened then; where it is open, memory can be switched off and on again."""
    settings = Settings.model_validate({"memory": {"mode": mode}})
    assert ("memory.mode" in open_lasting(settings, tmp_path).fixed) is fixed


@pytest.mark.parametrize("content", [None, '{"version": 1, "keys": []}'])
def test_a_key_file_that_is_wanted_has_keys(tmp_path: Path, content: str | None) -> None:
    """Who names one does not mean to serve everybody; the way out is in the message."""
    file = tmp_path / "keys.json"
    if content is not None:
        file.write_text(content)
    settings = Settings.model_validate({"keys": {"file": str(file)}})
    with pytest.raises(ConfigError, match=r"holds no keys.*usher key new"):
        open_lasting(settings, tmp_path)
    new_key(file, lambda key: key, "alice")
    assert not open_lasting(settings, tmp_path).ring.open


async def test_caches_that_last_tell_their_bytes(tmp_path: Path) -> None:
    """Each by itself; vectors are there as soon as a catalogue had its meaning computed."""
    parts = open_lasting(Settings.model_validate({"prediction": {"ranker": "lexical"}}), tmp_path)
    assert parts.cache_bytes() == {"state": 0, "lessons": 0, "vectors": 0}
    await parts.store.put("t", "key", b"x" * 1_000)
    parts.lessons.learn("t", "weather in Rome", "get_weather")
    sizes = parts.cache_bytes()
    assert 1_000 < sizes["state"] < 2_000
    assert sizes["lessons"] == parts.lessons.bytes > 0


async def test_work_beside_answers_is_counted_while_it_runs(tmp_path: Path) -> None:
    """A queue that grows can be seen before it is full."""
    parts = open_lasting(Settings(), tmp_path)

    def tasks() -> float | None:
        return parts.metrics.registry.get_sample_value("usher_background_tasks")

    assert tasks() == 0
    done = asyncio.Event()

    async def work() -> None:
        await done.wait()

    parts.background.spawn(work())
    parts.background.spawn(work())
    assert tasks() == 2
    done.set()
    await parts.background.drain(5)
    assert tasks() == 0


async def test_everything_ends(tmp_path: Path) -> None:
    """A watch of somebody else's runs as long as the rest, and nothing is left running."""
    ended: list[str] = []

    async def watch() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("watch")

    lasting = open_lasting(Settings(), tmp_path)
    async with live(lasting, [watch]):
        await asyncio.sleep(0)
        assert not ended
    assert ended == ["watch"]
    assert len(lasting.background) == 0
