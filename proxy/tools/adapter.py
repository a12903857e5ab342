"""Vectors of questions go in; the same, turned a little towards how tools are described, come out.

A sentence model was not trained to match requests with tools. The turn is a low-rank correction,
q → q + (q · down) · up, learned from labelled sets by `usher eval adapt`.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]


class Adapter:
    """A learned turn; `down` is size by rank, `up` rank by size."""

    def __init__(self, down: Matrix, up: Matrix) -> None:
        self._down = down
        self._up = up

    def turn(self, vectors: Matrix) -> Matrix:
        """Turn vectors, one per row, and bring them back to length one."""
        turned = vectors + (vectors @ self._down) @ self._up
        lengths = np.linalg.norm(turned, axis=-1, keepdims=True)
        unit: Matrix = turned / np.maximum(lengths, 1e-6)
        return unit

    def write(self, path: Path) -> None:
        """Keep it as float16: `down`, then `up` transposed."""
        path.write_bytes(np.stack([self._down, self._up.T]).astype(np.float16).tobytes())


def read_adapter(path: Path, size: int) -> Adapter:
    """Read what `write` wrote for vectors of this size; raises ValueError for anything else."""
    both = np.frombuffer(path.read_bytes(), np.float16).astype(np.float32).reshape(2, size, -1)
    return Adapter(both[0], both[1].T)
