"""Labelled queries turn towards the tools that they meant."""

import numpy as np

from proxy.evals.adapt import Examples, train_adapter


def test_a_consistent_offset_is_learned() -> None:
    """When queries along one axis always mean tools along another, new ones follow."""
    rng = np.random.default_rng(1)
    tools = np.eye(40, dtype=np.float32)
    queries = np.roll(tools, 1, axis=1) + 0.05 * rng.standard_normal((40, 40))
    examples = Examples(queries.astype(np.float32), tools, np.eye(40, dtype=np.float32))
    before = float(np.trace(queries @ tools.T))
    after = float(np.trace(train_adapter([examples], 40).turn(examples.queries) @ tools.T))
    assert after > before + 1.0
