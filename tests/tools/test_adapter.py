"""A learned turn of query vectors survives its file."""

from pathlib import Path

import numpy as np
import pytest

from proxy.tools.adapter import Adapter, read_adapter

DOWN = np.array([[1.0], [0.0], [0.0]], dtype=np.float32)
UP = np.array([[0.0, 1.0, 0.0]], dtype=np.float32)


def test_a_vector_is_turned_and_keeps_its_length() -> None:
    """The first axis leans towards the second; others stay."""
    turned = Adapter(DOWN, UP).turn(np.eye(3, dtype=np.float32))
    assert np.allclose(turned[0], [0.5**0.5, 0.5**0.5, 0.0])
    assert np.allclose(turned[2], [0.0, 0.0, 1.0])


def test_a_written_adapter_is_read_back(tmp_path: Path) -> None:
    """The file is all there is to it."""
    path = tmp_path / "adapter.bin"
    Adapter(DOWN, UP).write(path)
    vector = np.array([1.0, 0.0, 0.0], dtype=np.float32)
    assert np.allclose(read_adapter(path, 3).turn(vector), Adapter(DOWN, UP).turn(vector))


def test_a_file_of_another_size_is_refused(tmp_path: Path) -> None:
    """Vectors of another model cannot be turned by it."""
    path = tmp_path / "adapter.bin"
    Adapter(DOWN, UP).write(path)
    with pytest.raises(ValueError, match="reshape"):
        read_adapter(path, 4)
