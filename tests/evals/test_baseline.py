"""A ranker change cannot make the shipped sets worse unnoticed."""

from pathlib import Path

import pytest

from proxy.errors import ConfigError
from proxy.evals.baseline import find_regressions, measure_entry, read_baseline
from proxy.evals.rankers import open_ranker
from proxy.tools.semantic import has_semantic

BASELINE = Path("tests/data/retrieval/baseline.json")


@pytest.mark.slow
@pytest.mark.parametrize("ranker", ["lexical", "semantic"])
def test_the_committed_figures_still_hold(
    ranker: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The gate: every figure of the committed baseline, within its tolerance."""
    if ranker == "semantic" and not has_semantic():
        pytest.skip("the extra `semantic` is not installed")
    baseline = read_baseline(BASELINE)
    entries = [entry for entry in baseline["sets"] if entry["ranker"] == ranker]
    if ranker == "semantic":  # the other sets: `usher eval regress`
        entries = [entry for entry in entries if entry["set"] in {"azure", "metatool"}]
    assert entries
    with open_ranker(ranker, tmp_path_factory.mktemp("vectors") / "vectors.bin") as opened:
        found = [
            line
            for entry in entries
            for line in find_regressions(
                entry, measure_entry(entry, BASELINE.parent, opened), baseline["tolerance"]
            )
        ]
    assert found == []


def test_a_fall_beyond_the_tolerance_is_named() -> None:
    """Which set, which ranker, which figure, from what to what."""
    entry = {"set": "s", "ranker": "lexical", "kind": "retrieval", "figures": {"1": 0.8, "5": 0.9}}
    assert find_regressions(entry, {"1": 0.795, "5": 0.85}, 0.01) == [
        "s lexical: retrieval@5 fell from 0.9 to 0.85"
    ]


ENTRY = '{"kind": "retrieval", "set": "s", "ranker": "lexical"'


@pytest.mark.parametrize(
    "text",
    [
        "{oops", "[]", "{}", '{"sets": []}', '{"sets": [3]}', '{"sets": [{}]}',
        f'{{"sets": [{ENTRY}}}]}}', f'{{"sets": [{ENTRY}, "figures": {{"1": "x"}}}}]}}',
        f'{{"tolerance": "a", "sets": [{ENTRY}, "figures": {{}}}}]}}',
    ],
)  # fmt: skip
def test_a_broken_baseline_is_one_line(tmp_path: Path, text: str) -> None:
    """A file that is no baseline is named as such."""
    path = tmp_path / "baseline.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"baseline\.json"):
        read_baseline(path)


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    """Only what can be measured can be compared."""
    with open_ranker("lexical", None) as ranker, pytest.raises(ConfigError, match="no kind"):
        measure_entry({"kind": "luck"}, tmp_path, ranker)
