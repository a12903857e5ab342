"""Every test starts with asyncio, an empty folder for data and no settings from the environment."""

import os
from pathlib import Path

import pytest

FOREIGN = ("USHER_", "OPENAI_", "ANTHROPIC_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.upper().startswith(FOREIGN):
            monkeypatch.delenv(name)
    monkeypatch.setenv("USHER_DATA", str(tmp_path / "usher-data"))
