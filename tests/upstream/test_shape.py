"""A provider that streams when it should not, or does not when it should, hides nothing less."""

from collections.abc import Sequence
from typing import Protocol

import orjson
import pytest

from proxy.errors import StreamTruncated
from proxy.upstream.shape import flatten, outcome_of_reply
from proxy.upstream.transport import Prepared
from proxy.wire import JSONObject
from tests.turns import call, chunks_of, completion, events, read, request, search, stage

pytestmark = pytest.mark.anyio

MAIL = call("mail_delete", {"id": 3})


class Shape(Protocol):
    """An upstream's reply in one shape."""

    def __call__(
        self, text: str | None, calls: Sequence[JSONObject], *, number: int = 1
    ) -> Prepared:
        """That reply."""


ORDERS: list[tuple[Shape, Shape]] = [
    (completion, completion),
    (completion, events),
    (events, completion),
    (events, events),
]


@pytest.mark.parametrize(("first", "second"), ORDERS)
@pytest.mark.parametrize("stream", [True, False])
async def test_no_shape_of_a_round_leaks_the_search(
    first: Shape, second: Shape, stream: bool
) -> None:
    """Whatever shape each round has, the client gets the call, both rounds' usage and no search."""
    theatre = stage(first("Let me look.", [search("mail", "s1")]), second(None, [MAIL], number=2))
    reply = await theatre.chat(request(stream=stream, stream_options={"include_usage": True}))
    body = await read(reply)
    assert b'"tool_search"' not in body
    if body.startswith(b"data: "):
        chunks = chunks_of(body)
        said = [made for c in chunks for choice in c["choices"] for made in [choice["delta"]]]
        names = [
            t["function"]["name"] for d in said for t in d.get("tool_calls") or [] if "id" in t
        ]
        usage = chunks[-1]["usage"]
    else:
        whole = orjson.loads(body)
        names = [t["function"]["name"] for t in whole["choices"][0]["message"]["tool_calls"]]
        usage = whole["usage"]
        assert dict(reply.headers)[b"content-type"] == b"application/json"
    assert names == ["mail_delete"]
    assert usage["completion_tokens"] == 3


async def test_an_event_stream_that_needs_no_change_keeps_its_bytes() -> None:
    """Asked for one object, the upstream streamed: that is between it and the client."""
    theatre, twin = stage(events("Hello.")), stage(events("Hello."))
    body = await read(await theatre.chat(request(stream=False)))
    streamed = await read(await twin.chat(request(stream=True)))
    assert body.startswith(b"data: ")
    assert len(chunks_of(body)) >= len(chunks_of(streamed))


def test_a_cut_event_stream_is_an_error_and_not_half_an_answer() -> None:
    """Flattening raises instead of returning half an answer."""
    with pytest.raises(StreamTruncated):
        flatten(b'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n')


def test_a_stream_that_states_an_error_is_that_error() -> None:
    """Nothing else in the stream counts then."""
    assert flatten(b'data: {"error":{"message":"full"}}\n\n') == {"error": {"message": "full"}}


async def test_an_object_that_states_an_error_ends_the_stream_with_it() -> None:
    """A hidden round answered by a plain error object ends the stream with that error."""
    theatre = stage(
        events("Let me look.", [search("mail", "s1")]),
        Prepared(200, [(b"content-type", b"application/json")], b'{"error":{"message":"full"}}'),
    )
    body = await read(await theatre.chat(request(stream=True)))
    assert b'"full"' in body
    assert b'"tool_search"' not in body


def test_a_reply_that_is_no_completion_has_a_word_of_its_own() -> None:
    """`http_200` would read as if all had gone well."""
    assert outcome_of_reply(200) == "no_completion"
    assert outcome_of_reply(503) == "http_503"


@pytest.mark.parametrize("searches", [False, True])
async def test_half_an_emoji_does_not_end_the_turn(searches: bool) -> None:
    """A lone surrogate in the text goes through, also into a hidden round's history."""
    first = events("half \ud83d", [search("mail", "s1")] if searches else [MAIL])
    theatre = stage(first, events(None, [MAIL], number=2))
    reply = await theatre.chat(request(stream=True))
    body = await read(reply)
    assert b"error" not in body
    assert body.endswith(b"data: [DONE]\n\n")
    assert b'"mail_delete"' in body
