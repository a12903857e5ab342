"""What the gate saves."""

from proxy.demo.remembering import compare_memory


def test_the_gate_saves_runs_and_loses_nothing() -> None:
    """713 turns run the agent 713 times without it; with it far fewer, and the same two facts."""
    report = compare_memory()
    assert report["off"]["runs"] == report["turns"] == 713
    assert report["on"]["runs"] < 200
    assert report["on"]["stored"] == report["off"]["stored"]
    assert len(report["on"]["stored"]) == 2
