"""A thousand malformed tool arrays, calls and histories: no error of ours, no changed body."""

import asyncio
import json
import random
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.app import Gateway, build_gateway
from proxy.settings import Settings
from proxy.upstream.transport import UpstreamRequest
from proxy.wire import JSON, JSONObject
from tests.edge.driver import CHAT, Answered, ask
from tests.fakes.transport import FakeTransport, Outcome
from tests.turns import call, chunks_of, completion, events

_SETTINGS = Settings.model_validate(
    {
        "upstream": {"base_url": "http://up.test/v1", "retries": 0},
        "deferral": {"min_tools": 1, "small_chars": 0},
        "ledger": {"enabled": False},
        "prediction": {"ranker": "lexical"},
    }
)
_ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=6)
)
_JUNK = st.recursive(
    _ODD,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
_NAMES = st.sampled_from(
    ["a", "b_c", "tool_search", "call_tool", "", "x" * 65, "é", "a b", "\u0000"]
)


def _sometimes(good: st.SearchStrategy[JSON]) -> st.SearchStrategy[JSON]:
    """Mostly what belongs there, else anything."""
    return st.one_of(good, good, good, _JUNK)


_SCHEMAS = _sometimes(
    st.sampled_from(
        [
            {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
            {"$ref": "#"},
            {"$ref": "http://127.0.0.1:9/x"},
            {"type": "object", "properties": {"n": {"$ref": "#/properties/n"}}},
            {"type": "object", "properties": {"q": {"pattern": "(a+)+$"}}},
            True,
            {},
        ]
    )
)
_FUNCTIONS = st.fixed_dictionaries(
    {"name": _sometimes(_NAMES)},
    optional={
        "description": _sometimes(st.text(max_size=20)),
        "parameters": _SCHEMAS,
        "strict": _sometimes(st.booleans()),
        "defer_loading": _sometimes(st.booleans()),
    },
)
_TOOLS = st.fixed_dictionaries(
    {"type": _sometimes(st.sampled_from(["function", "custom", "mcp"]))},
    optional={
        "function": _sometimes(_FUNCTIONS),
        "custom": _sometimes(_FUNCTIONS),
        "cache_control": _JUNK,
    },
)
_CALLS = st.fixed_dictionaries(
    {},
    optional={
        "id": _sometimes(st.sampled_from(["1", "2", ""])),
        "type": _sometimes(st.just("function")),
        "function": _sometimes(
            st.fixed_dictionaries(
                {"name": _sometimes(_NAMES), "arguments": _sometimes(st.just("{}"))}
            )
        ),
    },
)
_MESSAGES = st.fixed_dictionaries(
    {"role": _sometimes(st.sampled_from(["system", "user", "assistant", "tool", "function"]))},
    optional={
        "content": _sometimes(st.text(max_size=10)),
        "tool_calls": _sometimes(st.lists(_CALLS, max_size=3)),
        "tool_call_id": _sometimes(st.sampled_from(["1", "2"])),
        "function_call": _JUNK,
    },
)
_REQUESTS = st.fixed_dictionaries(
    {
        "model": _sometimes(st.just("m")),
        "messages": _sometimes(st.lists(_sometimes(_MESSAGES), max_size=5)),
        "tools": _sometimes(st.lists(_sometimes(_TOOLS), max_size=5)),
    },
    optional={
        "tool_choice": _sometimes(st.sampled_from(["auto", "none", "required"])),
        "stream": _sometimes(st.booleans()),
        "stream_options": _JUNK,
        "parallel_tool_calls": _JUNK,
        "n": _JUNK,
        "response_format": _JUNK,
    },
)


class Echo:
    """Keeps bodies and answers each with calls of whatever it was told."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self.bodies: list[bytes] = []

    def answer(self, sent: UpstreamRequest) -> Outcome:
        """A reply in the form asked for, often with odd calls."""
        assert isinstance(sent.body, bytes)
        self.bodies.append(sent.body)
        stream = b'"stream":true' in sent.body.replace(b" ", b"")
        calls = [self._call(position) for position in range(self._dice.randrange(3))]
        make = events if stream else completion
        return make(self._dice.choice([None, "Text"]), calls, number=len(self.bodies))

    def _call(self, position: int) -> JSONObject:
        name = self._dice.choice(["tool_search", "call_tool", "a", "b_c", "zz", ""])
        made = call(name, {"queries": ["a"]}, self._dice.choice(["1", "", f"i{position}"]))
        made["function"]["arguments"] = self._dice.choice(
            ["{}", "", "null", "[", '{"q":1}', '{"queries":"select:a"}', '"x"', '{"name":"a"}']
        )
        return made


class Switchboard(FakeTransport):
    """Connects one gateway with the echo of the example at hand."""

    def __init__(self) -> None:
        super().__init__(answer=self._connect)
        self.echo = Echo(random.Random(0))

    def _connect(self, sent: UpstreamRequest) -> Outcome:
        return self.echo.answer(sent)


@dataclass(frozen=True, slots=True)
class Rig:
    """One gateway for all examples."""

    gateway: Gateway
    switchboard: Switchboard

    def ask(self, body: bytes, seed: int = 0) -> tuple[Answered, Echo]:
        """One request, and what the upstream saw of it."""
        self.switchboard.sent.clear()
        echo = self.switchboard.echo = Echo(random.Random(seed))
        return asyncio.run(ask(self.gateway.app, "POST", CHAT, body)), echo


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    switchboard = Switchboard()
    folder = tmp_path_factory.mktemp("fuzz")
    return Rig(build_gateway(_SETTINGS, folder, {"openai": switchboard}), switchboard)


@settings(
    max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(request=_REQUESTS, seed=st.integers(0, 2**32))
def test_no_request_makes_usher_fail(
    request: JSONObject, seed: int, rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever a client sends, the upstream is asked and its answer is a clean one."""
    body = json.dumps(request).encode()
    answered, echo = rig.ask(body, seed)
    assert answered.status == 200
    assert answered.complete
    assert echo.bodies
    searching = b'"required":["queries"]' in echo.bodies[0]
    assert searching or request.get("tool_choice") in ("none", "required") or echo.bodies[0] == body
    if answered.headers["content-type"].startswith("text/event"):
        assert all("choices" in chunk for chunk in chunks_of(answered.body))
    assert "Traceback" not in caplog.text


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(body=st.binary(max_size=60) | st.text(max_size=40).map(lambda t: t.encode()))
def test_what_is_no_json_passes_as_it_is(body: bytes, rig: Rig) -> None:
    """The upstream shall say what is wrong with it."""
    answered, echo = rig.ask(body)
    assert answered.status == 200
    assert echo.bodies == [body]


@pytest.mark.parametrize("depth", [100, 1_500, 100_000])
@pytest.mark.parametrize("key", ["messages", "tools", "x", "usher"])
def test_deep_nesting_does_not_crash(depth: int, key: str, rig: Rig) -> None:
    """A body that no parser likes is the upstream's to refuse."""
    nested = b"[" * depth + b"]" * depth
    body = b'{"model":"m","' + key.encode() + b'":' + nested + b"}"
    answered, echo = rig.ask(body)
    assert answered.status == 200
    if key != "usher":
        assert echo.bodies == [body]
