"""A query is added up document by document; only those close to the best are looked at again."""

import random

from proxy.tools.postings import Posting
from proxy.tools.tally import LEADING, Share, Tally

SIZE = 60


def _share(weights: dict[int, float], rarity: float = 1.0) -> Share:
    posting = Posting()
    posting.weights, posting.most, posting.rarity = weights, max(weights.values()), rarity
    return posting, 1.0


def test_terms_add_up() -> None:
    """Every term brings its worth to the documents that have it, as much as it weighs there."""
    tally = Tally([_share({0: 1.0}, 3.0), _share({0: 0.5, 2: 2.0})], [], 0.0)
    assert tally.add_up(3) == [3.5, 0.0, 2.0]


def test_a_whole_name_is_worth_more() -> None:
    """The document whose name was said gains by its share, and what is fixed comes on top."""
    said, weight = _share({0: 1.0, 1: 1.0}, 2.0)
    said.names = {1: 1.0}
    assert Tally([(said, weight)], [{0: 0.25}], 0.5).add_up(2) == [2.25, 3.0]


def test_nothing_said_leads_nowhere() -> None:
    """Without a known word there are no leaders."""
    tally = Tally([], [], 0.25)
    assert tally.find_leaders(tally.add_up(3)) == set()


def test_no_leader_is_overlooked() -> None:
    """The shortcut finds just those documents that comparing all of them finds."""
    draw = random.Random(7)
    for _ in range(200):
        terms = [
            _share(
                {at: draw.uniform(0.2, 1.8) for at in draw.sample(range(SIZE), size)},
                draw.uniform(0.1, 6.0),
            )
            for size in (1, 2, 3, 8, 20, 40)
        ]
        gains = [{draw.randrange(SIZE): draw.uniform(0.0, 9.0)}] if draw.random() < 0.3 else []
        tally = Tally(terms, gains, 0.25)
        values = tally.add_up(SIZE)
        floor = LEADING * max(values)
        assert tally.find_leaders(values) == {at for at in range(SIZE) if values[at] > floor}
