"""The cassettes themselves: free of secrets, matched by content, cut without loss."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.scripted import Received
from tests.replay.cassettes import (
    CUTS,
    FOLDER,
    HOME,
    KEPT_BACK,
    KEPT_UP,
    Player,
    canonical,
    match_body,
    scrub_request,
    scrub_response,
)

FILES = sorted(FOLDER.rglob("*.yaml"))


def request(port: int = 80, **headers: str) -> SimpleNamespace:
    return SimpleNamespace(
        host="127.0.0.1", port=port, headers=headers, uri=f"http://127.0.0.1:{port}/v1/x?q=1"
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_cassette_holds_no_secret(file: Path) -> None:
    """Only headers on the list, only the stand-in's address, nothing that looks like a key."""
    text = file.read_text()
    assert not any(mark in text for mark in ("sk-", "Bearer", "secret=", "127.0.0.1"))
    for exchange in yaml.safe_load(text)["interactions"]:
        assert exchange["request"]["uri"].startswith(f"{HOME}/v1/")
        assert set(exchange["request"]["headers"]) <= KEPT_UP
        assert set(exchange["response"]["headers"]) <= KEPT_BACK


def test_every_cassette_belongs_to_a_test() -> None:
    """A cassette whose test is gone is gone, too."""
    here = Path(__file__).parent
    for file in FILES:
        assert f"def {file.stem}(" in (here / f"{file.parent.name}.py").read_text()


def test_request_is_scrubbed() -> None:
    """Keys, cookies and the machine's ports do not reach a cassette."""
    kept = scrub_request(
        request(Authorization="Bearer sk-1", cookie="a", api_key="k", Accept="*/*"), 8787
    )
    assert kept.headers == {"Accept": "*/*"}
    assert kept.uri == f"{HOME}/v1/x?q=1"


def test_clients_traffic_is_not_recorded() -> None:
    """A replay in which the gateway itself were played back would test nothing."""
    assert scrub_request(request(port=8787), 8787) is None


def test_response_is_scrubbed() -> None:
    """Cookies, organisations and request ids do not reach a cassette."""
    headers = {"Content-Type": ["a"], "Set-Cookie": ["b"], "OpenAI-Organization": ["c"]}
    kept = scrub_response({"headers": headers, "body": {"string": b"x"}})
    assert kept == {"headers": {"content-type": ["a"]}, "body": {"string": b"x"}}


def test_bodies_match_by_their_json() -> None:
    """Spaces and the order of keys do not matter to a match, any value does."""
    match_body(SimpleNamespace(body=b'{"a":1,"b":[2]}'), SimpleNamespace(body='{"b": [2], "a": 1}'))
    match_body(SimpleNamespace(body=None), SimpleNamespace(body=b""))
    with pytest.raises(AssertionError):
        match_body(SimpleNamespace(body=b'{"a":1}'), SimpleNamespace(body=b'{"a":2}'))
    assert canonical(b"{broken") == b"{broken"


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@given(body=st.text(alphabet="data:ü東🙂\n\\", max_size=60))
def test_cuts_lose_nothing(cut: object, body: str) -> None:
    """However a body is cut, its pieces are the body."""
    assert callable(cut)
    assert b"".join(cut(body.encode())) == body.encode()


def test_cuts_split_characters() -> None:
    """The adversarial cut separates the bytes of every character and of every blank line."""
    pieces = CUTS["inside characters"]("data: ü\n\n".encode())
    assert pieces == [b"data", b": \xc3", b"\xbc\n", b"\n"]


def test_player_plays_each_exchange_once() -> None:
    """A request that was not recorded, or not so often, gets an answer that fails its test."""
    player = Player(FOLDER / "test_chat" / "test_refusal.yaml", CUTS["at once"])
    [recorded] = player.unplayed
    asked = Received(
        connection=1,
        raw=b"",
        method=recorded.method,
        target=recorded.path,
        headers=[],
        body=b" " + recorded.sent,
        gone=None,  # type: ignore[arg-type]  # nobody waits for it here
    )
    assert b" 400 " in b"".join(step for step in player.answer(asked) if isinstance(step, bytes))
    assert (player.unplayed, player.altered) == ([], [asked.body])
    assert b" 599 " in b"".join(step for step in player.answer(asked) if isinstance(step, bytes))
