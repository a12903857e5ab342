"""The memory section."""

import pytest
from pydantic import ValidationError

from proxy.memory_settings import Memory


def test_off_by_default() -> None:
    """Nothing is remembered until somebody says so."""
    assert Memory().mode == "off"


def test_librechats_block_fits() -> None:
    """Its keys, its window and its switch."""
    memory = Memory.model_validate({
        "disabled": False,
        "validKeys": ["work_context"],
        "tokenLimit": 2000,
        "personalize": True,
        "messageWindowSize": 7,
    })  # fmt: skip
    assert (memory.mode, memory.token_limit, memory.window) == ("on", 2000, 7)
    assert memory.valid_keys == {"work_context": None}


@pytest.mark.parametrize("key", ["Work Context", "5x", "", "x" * 65])
def test_keys_that_could_never_be_written(key: str) -> None:
    """They are found when the configuration is read."""
    with pytest.raises(ValidationError, match="is no key"):
        Memory.model_validate({"valid_keys": [key]})
