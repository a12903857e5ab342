"""What is valid is applied, what is wrong changes nothing, what is fixed is named."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from proxy.config import Source
from proxy.errors import ConfigError
from proxy.observe.log import configure
from proxy.observe.metrics import Metrics
from proxy.reload import Followed, Reloader, differences, keep
from proxy.settings import Log, Settings
from proxy.wire import JSONObject
from tests.fakes.until import until

pytestmark = pytest.mark.anyio


@dataclass
class Scene:
    """A file that is followed, and who takes what is in it."""

    path: Path
    environ: dict[str, str] = field(default_factory=dict)
    taken: list[Settings] = field(default_factory=list)
    metrics: Metrics = field(default_factory=Metrics)
    refuse: str | None = None
    fail: Exception | None = None
    seconds: float = 0.005

    def __post_init__(self) -> None:
        self.path.write_text("deferral:\n  min_tools: 1\n")
        self.out = io.StringIO()

    async def take(self, settings: Settings) -> None:
        """Like a gateway that is built anew."""
        if self.refuse is not None:
            raise ConfigError(self.refuse)
        if self.fail is not None:
            raise self.fail
        self.taken.append(settings)

    def lines(self) -> list[JSONObject]:
        """What was logged."""
        return [json.loads(line) for line in self.out.getvalue().splitlines()]

    def events(self) -> list[str]:
        """The names of the lines."""
        return [line["event"] for line in self.lines()]

    def value(self, name: str, **labels: str) -> float | None:
        """A metric as a scrape shows it."""
        return self.metrics.registry.get_sample_value(name, labels)

    @asynccontextmanager
    async def running(self, *fixed: str, path: Path | None = None) -> AsyncIterator[Reloader]:
        """Follow the file, as the gateway does."""
        source = Source(path or self.path, {})
        loaded = source.load(self.environ)
        followed = Followed(source, loaded.stamp, self.environ, self.seconds)
        reloader = Reloader(followed, loaded.settings, fixed, self.take)
        log = configure(Log(format="json"), self.out)
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(reloader.watch(log, self.metrics))
            yield reloader
            watch.cancel()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "usher.yaml")


async def test_a_changed_file_is_applied(scene: Scene) -> None:
    """The new settings, a line that names what changed but no value, and a count."""
    async with scene.running():
        scene.path.write_text("deferral:\n  min_tools: 2\nupstream:\n  api_key: very-secret\n")
        await until(lambda: bool(scene.events()))
    assert scene.taken[0].deferral.min_tools == 2
    assert scene.lines()[0]["changed"] == ["upstream.api_key", "deferral.min_tools"]
    assert "very-secret" not in scene.out.getvalue()
    assert scene.value("usher_config_reloads_total", outcome="ok") == 1


@pytest.mark.parametrize("text", ["deferral:\n  mni_tools: 2\n", "]", "upstream: {api_key: ${NO}}"])
async def test_a_wrong_file_changes_nothing(scene: Scene, text: str) -> None:
    """One line with the reason, once; the mended file is taken again."""
    async with scene.running():
        scene.path.write_text(text)
        await until(lambda: bool(scene.events()))
        await asyncio.sleep(10 * scene.seconds)
        assert scene.events() == ["config_not_reloaded"]
        assert scene.value("usher_config_stale") == 1
        assert not scene.taken
        scene.path.write_text("deferral:\n  min_tools: 3\n")
        await until(lambda: scene.value("usher_config_stale") == 0)
    assert len(scene.taken) == 1


async def test_an_emptied_file_changes_nothing(scene: Scene) -> None:
    """As after a full disk, or `>`: neither at once nor when a signal asks for it again."""
    async with scene.running() as reloader:
        scene.path.write_text("")
        await until(lambda: bool(scene.events()))
        assert "the file is empty" in str(scene.lines()[0]["reason"])
        reloader.hurry()
        await until(lambda: len(scene.events()) == 2)
        assert not scene.taken
        scene.path.write_text("deferral:\n  min_tools: 3\n")
        await until(lambda: bool(scene.taken))


async def test_settings_that_cannot_be_served_change_nothing(scene: Scene) -> None:
    """As when a folder that a setting names is not there."""
    scene.refuse = "no such folder"
    async with scene.running() as reloader:
        reloader.hurry()
        await until(lambda: bool(scene.events()))
    assert scene.lines()[0]["reason"] == "no such folder"
    assert scene.value("usher_config_reloads_total", outcome="failed") == 1


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(2, "No such file"), "No such file"),
        (ZeroDivisionError("a secret"), "ZeroDivisionError"),
    ],
)
async def test_a_bug_is_no_end_of_the_gateway(scene: Scene, error: Exception, reason: str) -> None:
    """Whatever fails with new settings, the old ones go on, and the next change is tried."""
    scene.fail = error
    async with scene.running() as reloader:
        reloader.hurry()
        await until(lambda: bool(scene.events()))
        scene.fail = None
        reloader.hurry()
        await until(lambda: bool(scene.taken))
    assert scene.lines()[0]["reason"] == reason


async def test_a_signal_reads_the_environment_again(scene: Scene) -> None:
    """Though the file is the same, what its references stand for may not be."""
    scene.environ["KEY"] = "one"
    scene.path.write_text("upstream:\n  api_key: ${KEY}\n")
    async with scene.running() as reloader:
        scene.environ["KEY"] = "two"
        reloader.hurry()
        await until(lambda: bool(scene.taken))
    key = scene.taken[0].upstream.api_key
    assert key is not None
    assert key.get_secret_value() == "two"


async def test_a_file_that_is_being_written_is_left_alone(scene: Scene) -> None:
    """It is read once it has stayed the same from one look to the next."""
    scene.seconds = 0.5
    async with scene.running():
        for number in range(2, 40):
            scene.path.write_text(f"deferral:\n  min_tools: {number}\n")
            await asyncio.sleep(0.01)
        await until(lambda: bool(scene.taken))
    assert [settings.deferral.min_tools for settings in scene.taken] == [39]


async def test_a_file_that_is_gone_is_no_wish_for_defaults(scene: Scene) -> None:
    """What was found at the start has to be there."""
    async with scene.running():
        scene.path.unlink()
        await until(lambda: bool(scene.events()))
    assert scene.events() == ["config_not_reloaded"]
    assert "no such file" in scene.lines()[0]["reason"]


async def test_what_is_fixed_is_named_and_kept(scene: Scene) -> None:
    """Beside what can change, which is taken."""
    async with scene.running("server.port", "ledger"):
        scene.path.write_text(
            "server: {port: 1, ping_seconds: 2}\nledger: {enabled: false}\nprices: []\n"
        )
        await until(lambda: len(scene.events()) == 2)
    taken = scene.taken[0]
    assert (taken.server.port, taken.server.ping_seconds, taken.ledger.enabled) == (8787, 2, True)
    assert scene.lines()[1]["event"] == "needs_a_restart"
    assert scene.lines()[1]["settings"] == ["server.port", "ledger.enabled"]


async def test_a_loop_is_refused_by_the_port_that_is_in_use(scene: Scene) -> None:
    """The file names another port, but Usher still listens on its own."""
    async with scene.running("server.port"):
        scene.path.write_text(
            "server: {port: 1}\nupstream: {base_url: 'http://127.0.0.1:8787/v1'}\n"
        )
        await until(lambda: bool(scene.events()))
    assert "is Usher itself" in scene.lines()[0]["reason"]


def test_differences_are_names() -> None:
    """Of settings, and of whole lists of sections."""
    one = Settings()
    other = Settings.model_validate(
        {"log": {"level": "debug"}, "prices": [{"model": "m", "input": 1}]}
    )
    assert differences(one, other) == ["prices", "log.level"]
    assert differences(one, Settings()) == []
    assert keep(["log.lev"], one, other)[1] == []
