"""Whatever a turn's rounds and its provider's habits are, the client sees one clean stream."""

import json
import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.stream.collect import Answer, sum_usage
from proxy.stream.splice import Splicer
from proxy.stream.sse import DONE, Splitter
from proxy.wire import JSON
from tests.stream.provider import NAMES, VISIBLE, Habits, Provider, Round, habits, rounds, turns
from tests.stream.transcript import Seen, see

_dice = st.randoms(use_true_random=False)


def _play(splicer: Splicer, wire: bytes, dice: random.Random) -> bytes:
    """Feed one round in random reads."""
    splitter = Splitter()
    out = b""
    while wire:
        size = dice.choice([1, 7, 100, 5000])
        out += b"".join([splicer.feed(frame) for frame in splitter.feed(wire[:size])])
        wire = wire[size:]
    return out + b"".join([splicer.feed(frame) for frame in splitter.finish()])


def _join(texts: list[str]) -> str:
    joined = ""
    for text in texts:
        gap = joined and text and not joined[-1].isspace() and not text.startswith("\n")
        joined += f"\n\n{text}" if gap else text
    return joined


def _words(answer: Answer) -> list[tuple[str, JSON]]:
    return [(call.name, json.loads(call.arguments)) for call in answer.calls]


@settings(deadline=None, max_examples=250)
@given(turns, habits, _dice, st.booleans(), st.booleans())
def test_every_turn_of_every_provider(
    turn: list[Round], habits: Habits, dice: random.Random, asked: bool, hold: bool
) -> None:
    """One role, id, model, finish and end; all text in order; all real calls whole and gapless."""
    provider = Provider(habits, dice)
    splicer = Splicer(include_usage=asked, hold_text=hold)
    wire, answers = b"", []
    for spoken in turn:
        splicer.start_round(VISIBLE, NAMES)
        wire += _play(splicer, provider.write(spoken), dice)
        answers.append(splicer.answer())
        assert (answers[-1].complete, _words(answers[-1])) == (True, spoken.calls)
        assert (answers[-1].message["content"] or "") == "".join(spoken.text)
    late = [call for call in answers[-1].calls if call.name == "unloaded"]
    wire += splicer.release(late)
    wire += splicer.finish(sum_usage([answer.usage for answer in answers]))
    seen = see(wire)
    _check_frame(seen, len(turn), asked=asked)
    assert b'"tool_search"' not in wire
    assert seen.text == _join(["".join(spoken.text) for spoken in (turn[-1:] if hold else turn)])
    real = [call for call in answers[-1].calls if call.name in VISIBLE] + late
    assert sorted(seen.calls) == sorted((call.id, call.name, call.arguments) for call in real)


def _check_frame(seen: Seen, rounds: int, *, asked: bool) -> None:
    assert (seen.roles, seen.dones, seen.errors) == (["assistant"], 1, [])
    assert seen.finishes in ([["stop"], ["tool_calls"]] if seen.calls else [["stop"]])
    for name in ("id", "created", "model"):
        assert len(seen.heads(name) - {None}) == 1
    assert len(seen.usages) <= asked
    assert all(usage["total_tokens"] == sum(range(rounds + 1)) for usage in seen.usages)


@settings(deadline=None)
@given(rounds(["t0", "tool_b"], 0), habits, _dice)
def test_a_turn_of_one_clean_round_keeps_its_bytes(
    spoken: Round, habits: Habits, dice: random.Random
) -> None:
    """A well-behaved provider is passed on untouched, whatever its spelling and line ends."""
    clean = replace(habits, index="given", ids="once", names="whole", objects=False, roles=False)
    clean = replace(clean, heads=False, finish="tool_calls", usage="own chunk", done=False)
    wire = Provider(clean, dice).write(spoken)
    splicer = Splicer(include_usage=True)
    splicer.start_round(VISIBLE, ["tool_search"])
    out = _play(splicer, wire, dice) + splicer.finish({"total_tokens": 1})
    assert out == wire + DONE
