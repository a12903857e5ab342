"""No hidden round ever leaks, whatever the rounds say and however their bytes arrive."""

import asyncio
import random

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.upstream.transport import UpstreamRequest
from proxy.wire import JSONObject
from tests.fakes.transport import Outcome
from tests.turns import call, chunks_of, completion, events, read, request, search, stage

_WORDS = ["storm", "mail", "weather", "tool_searching", "é漢字🙂"]
_REAL: list[tuple[str, JSONObject]] = [
    ("mail_delete", {"id": 3}),
    ("weather_now", {"city": "Łódź"}),
    ("unheard_of", {"x": 1}),
]


def _rounds(dice: random.Random) -> list[tuple[str | None, list[JSONObject]]]:
    """What a model says, round by round: searches for a while, then something for the client."""
    said: list[tuple[str | None, list[JSONObject]]] = []
    for number in range(dice.randrange(4)):
        calls = [search(f"{dice.choice(_WORDS)} {number}", f"s{number}-{i}") for i in range(2)]
        said.append((dice.choice([None, "Hm.|Let me| look"]), calls[: dice.choice([1, 2])]))
    calls = []
    for index in range(dice.randrange(4)):
        name, arguments = dice.choice(_REAL)
        calls.append(call(name, arguments, f"c{index}"))
    if dice.random() < 0.3:
        calls.insert(dice.randrange(len(calls) + 1), search("mail", "mixed"))
    said.append((dice.choice([None, "Here |you| are."]) if calls else "No tool.", calls))
    return said


class Parrot:
    """Plays rounds; when they are over it ends the turn."""

    def __init__(self, dice: random.Random, *, stream: bool) -> None:
        self._rounds = _rounds(dice)
        self._dice = dice
        self._stream = stream
        self.number = 0

    def answer(self, _: UpstreamRequest) -> Outcome:
        """The next round, its bytes in pieces of any size."""
        self.number += 1
        text, calls = self._rounds.pop(0) if self._rounds else ("The end.", [])
        if not self._stream:
            return completion((text or "").replace("|", "") or None, calls, number=self.number)
        pieces = self._dice.choice([1, 3, 40, 10_000])
        return events(text, calls, number=self.number, pieces=pieces)


async def _play(seed: int, *, stream: bool) -> bytes:
    dice = random.Random(seed)
    theatre = stage(answer=Parrot(dice, stream=stream).answer)
    body = request(stream=stream, stream_options={"include_usage": True})
    return await read(await theatre.chat(body))


def _assert_clean(choices: list[JSONObject]) -> None:
    pieces = [made for choice in choices for made in choice["delta"].get("tool_calls") or []]
    openings = [piece["index"] for piece in pieces if piece.get("id")]
    assert openings == list(range(len(openings)))
    assert [c["finish_reason"] for c in choices if c["finish_reason"]] == [
        "tool_calls" if openings else "stop"
    ]
    assert sum("role" in choice["delta"] for choice in choices) == 1
    for index in openings:
        text = "".join(p["function"].get("arguments") or "" for p in pieces if p["index"] == index)
        assert isinstance(orjson.loads(text), dict)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_client_sees_one_clean_stream(seed: int) -> None:
    """No search, one finish reason, gapless indices, one id, one role, usage last, one [DONE]."""
    body = asyncio.run(_play(seed, stream=True))
    assert b'"tool_search"' not in body
    assert body.count(b"data: [DONE]") == 1
    chunks = chunks_of(body)
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}) == 1
    assert [bool(chunk.get("usage")) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    _assert_clean([choice for chunk in chunks for choice in chunk["choices"]])


@pytest.mark.item("params/no-stream")
@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_stream_says_what_the_whole_reply_says(seed: int) -> None:
    """The same rounds give the same text, calls and usage, streaming or not."""
    whole = orjson.loads(asyncio.run(_play(seed, stream=False)))
    chunks = chunks_of(asyncio.run(_play(seed, stream=True)))
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    pieces = [made for choice in choices for made in choice["delta"].get("tool_calls") or []]
    message = whole["choices"][0]["message"]
    assert text == (message["content"] or "")
    # A call of an unloaded tool waits for its check while loaded ones stream, so order may differ.
    assert sorted(piece["id"] for piece in pieces if piece.get("id")) == sorted(
        made["id"] for made in message.get("tool_calls", [])
    )
    assert chunks[-1]["usage"] == whole["usage"]
    assert 'tool_search"' not in orjson.dumps(whole).decode()
