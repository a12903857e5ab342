"""Labelled queries turn towards the tools that they meant."""

from pathlib import Path

import numpy as np
import pytest

from proxy.errors import ConfigError
from proxy.evals.adapt import Examples, learn_file, train_adapter
from proxy.tools.semantic import has_semantic
from tests.evals.conftest import write_lines


def test_a_consistent_offset_is_learned() -> None:
    """When queries along one axis always mean tools along another, new ones follow."""
    rng = np.random.default_rng(1)
    tools = np.eye(40, dtype=np.float32)
    queries = np.roll(tools, 1, axis=1) + 0.05 * rng.standard_normal((40, 40))
    examples = Examples(queries.astype(np.float32), tools, np.eye(40, dtype=np.float32))
    before = float(np.trace(queries @ tools.T))
    after = float(np.trace(train_adapter([examples], 40).turn(examples.queries) @ tools.T))
    assert after > before + 1.0


def test_an_empty_set_teaches_nothing(folder: Path) -> None:
    """It is named in one line, and no file is written."""
    if not has_semantic():
        pytest.skip("the extra `semantic` is not installed")
    write_lines(folder / "queries.jsonl", [])
    with pytest.raises(ConfigError, match=r"queries\.jsonl: there is nothing in it"):
        learn_file([folder], None, folder / "turn")
    assert not (folder / "turn").exists()
