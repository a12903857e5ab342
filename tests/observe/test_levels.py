"""Gauges that are read when they are scraped."""

from prometheus_client import CollectorRegistry

from proxy.observe.levels import Levels


def test_a_scrape_shows_what_is_there_now() -> None:
    """Without being told of changes; what is gone is no longer shown."""
    registry = CollectorRegistry(auto_describe=True)
    levels = Levels("depth", "How deep.", "lake", registry)
    assert registry.get_sample_value("depth", {"lake": "a"}) is None
    depths = {"a": 1.0}
    levels.follow(lambda: depths)
    assert registry.get_sample_value("depth", {"lake": "a"}) == 1
    depths["a"] = 2
    assert registry.get_sample_value("depth", {"lake": "a"}) == 2
    levels.follow(lambda: {"b": 0})
    assert registry.get_sample_value("depth", {"lake": "a"}) is None
    assert registry.get_sample_value("depth", {"lake": "b"}) == 0
