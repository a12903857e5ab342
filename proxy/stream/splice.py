"""The events of several upstream rounds come in; one stream as from a single call goes out."""

import operator
from collections.abc import Container, Iterable, Sequence

from proxy.stream.calls import Call, OpenCall
from proxy.stream.chunk import (
    NULL_USAGE,
    ROLE,
    Delta,
    Piece,
    TextChunk,
    cut_field,
    decode_text,
    dump,
    load,
)
from proxy.stream.collect import Answer, Collector, is_first, read_choices, read_error
from proxy.stream.ending import Ending
from proxy.stream.head import Head
from proxy.stream.outlet import Outlet
from proxy.stream.route import Router
from proxy.stream.sse import DONE, Frame, encode, tidy
from proxy.stream.template import Template, learn
from proxy.wire import JSON, JSONObject

_LF = 10
LESSONS = 4
"""How often in a round it is worth learning how text chunks look."""


class Splicer:
    """Makes one client stream of several rounds.

    Call `start_round`, then `feed` with each event of that round, then look at `answer`. Starting
    another round hides the end and the held calls of the one before; `release` and `finish` show
    them. With `hold_text` the text of a round also waits until the round is known to be visible.

    A role or an empty chunk waits for the first thing to see, so until `started` not a byte went
    out and a failure can still have its own HTTP status.
    """

    def __init__(self, *, include_usage: bool, hold_text: bool = False) -> None:
        self._include_usage = include_usage
        self._rounds = 0
        self._head = Head()
        self._router = Router()
        self._outlet = Outlet(hold_text=hold_text)
        self._collector = Collector()
        self._role_sent = False
        self._released = False
        self._over = False
        self._ending = Ending()
        self._template: Template | None = None
        self._lessons = 0

    @property
    def started(self) -> bool:
        """Whether the client got anything."""
        return self._outlet.started

    @property
    def finished(self) -> bool:
        """Whether this round has said why it ended: only its usage may still come."""
        return self._over or self._collector.done or self._collector.finish_reason is not None

    @property
    def text(self) -> str:
        """The reply's text as the client has it, separators included."""
        return self._outlet.text

    def start_round(self, visible: Container[str], names: Iterable[str] = ()) -> None:
        """Begin a round; what the one before held back stays hidden.

        Calls of `visible` names stream live. `names` are the others that the model knows: with
        them, a name sent in pieces is never taken for a shorter one.
        """
        self._rounds += 1
        self._collector = Collector(salt=str(self._rounds))
        self._router.start_round(visible, names)
        self._outlet.start_round()
        self._ending = Ending()
        self._template = None
        self._lessons = LESSONS

    def feed(self, frame: Frame) -> bytes:
        """What the client gets for one event of the upstream; maybe nothing."""
        data = frame.data
        if data is None or self._over:
            return b""
        if self._template is not None and not self._outlet.gap:
            known = self._template.match(frame)
            if known is not None:
                self._collector.add_content(known[0])
                return self._outlet.send(known[1], known[0], shows=True)
        try:
            chunk = decode_text(data)
        except (ValueError, RecursionError):
            return self._inspect(frame, data)
        wire = self._pass_text(frame, data, chunk)
        return self._inspect(frame, data) if wire is None else wire

    def answer(self) -> Answer:
        """This round so far, held parts included."""
        return self._collector.answer()

    def release(self, calls: Sequence[Call]) -> bytes:
        """Held calls that turned out to be the client's: each whole, under the next index."""
        if not calls or self._over:
            return b""
        self._released = True
        chunks = [self._chunk({"tool_calls": [self._router.release(call)]}) for call in calls]
        wire = b"".join([encode(dump(chunk)) for chunk in chunks])
        return self._outlet.open() + self._outlet.send(wire, "", shows=True)

    def finish(self, usage: JSONObject | None, extra: JSONObject | None = None) -> bytes:
        """The end of the stream; `usage` is the whole turn's, `extra` goes on the finish chunk."""
        if self._over:
            return b""
        before = self._close_calls() + self._outlet.open()
        self._over = True
        wire = self._ending.render_finish(self._calls_shown(), extra)
        if usage and self._include_usage:
            wire += self._ending.render_usage(usage, self._head.chunk())
        return before + self._outlet.send(wire + DONE, "", shows=True)

    def fail(self, error: JSONObject) -> bytes:
        """An error in the middle of the stream, and its end; never a finish reason."""
        if self._over:
            return b""
        body = error if isinstance(error.get("error"), dict) else {"error": error}
        return self._break_off(encode(dump(body)))

    def _pass_text(self, frame: Frame, data: bytes, chunk: TextChunk) -> bytes | None:
        """The quick way for a chunk that only says something; None when it is not that easy."""
        delta = chunk.choices[0].delta
        text = delta.content or ""
        shows = bool(text) or _shows(delta)
        if delta.tool_calls:
            plain = not shows and delta.role is None
            return self._pass_piece(frame, data, chunk, delta.tool_calls[0]) if plain else None
        again = delta.role is not None and self._role_sent
        if (text and self._outlet.gap) or (again and not shows):
            return None
        wire = self._render_text(frame, data, chunk, again=again)
        if wire is None:
            return None
        self._role_sent = self._role_sent or delta.role is not None
        if self._lessons and text and delta.role is None and not _shows(delta):
            self._lessons -= 1
            self._template = learn(data, text, wire)
        self._collector.add_text(delta)
        return self._outlet.send(wire, text, shows)

    def _pass_piece(
        self, frame: Frame, data: bytes, chunk: TextChunk, piece: Piece
    ) -> bytes | None:
        """The same for further arguments of a call that is already live, or held for good."""
        call = self._collector.assembler.latest(piece.index)
        held = call in self._router.held
        if call is None or not (held or self._router.index_of(call) == piece.index):
            return None
        wire = b"" if held else self._render_text(frame, data, chunk, again=False)
        if wire is not None and piece.function.arguments:
            call.pieces.append(piece.function.arguments)
        return wire

    def _render_text(
        self, frame: Frame, data: bytes, chunk: TextChunk, *, again: bool
    ) -> bytes | None:
        """The event with the constant head and without what the client must not get twice."""
        if frame.event is not None:
            return None
        out = self._head.rewrite(chunk, data)
        if out is not None and chunk.usage is None and not self._include_usage:
            out = cut_field(out, NULL_USAGE)
        if out is not None and again:
            out = cut_field(out, ROLE)
        if out is data:
            return tidy(frame)
        return None if out is None or _LF in out else encode(out)

    def _inspect(self, frame: Frame, data: bytes) -> bytes:
        self._template = None  # what it knows of the head may be out of date
        if data.lstrip().startswith(b"[DONE]"):
            self._collector.done = True
            return self._close_calls()
        chunk = load(data)
        error = read_error(chunk) if isinstance(chunk, dict) else None
        if error is not None or frame.event == b"error":
            said = chunk if isinstance(chunk, dict) else {"message": "an error event"}
            self._collector.error = error or said
            return self._break_off(tidy(frame))
        if isinstance(chunk, dict):
            return self._splice(frame, data, chunk)
        if not data.strip() or b'"tool_calls"' in data:
            return b""  # nothing, which crashes SDKs, or a call that cannot be read
        return self._outlet.send(tidy(frame), "", shows=False)

    def _splice(self, frame: Frame, data: bytes, chunk: JSONObject) -> bytes:
        self._collector.add_top(chunk)
        same = not self._head.stamp(chunk, data)
        choices = read_choices(chunk)
        if chunk.get("usage") and not choices:
            same = same and chunk.get("choices") == []
            wire = tidy(frame) if same else encode(dump(chunk | {"choices": []}))
            self._ending.keep_usage(chunk["usage"], wire)
            return b""
        counted = bool(chunk.get("usage"))
        same = not self._hide_usage(chunk) and same
        views = [self._view(choice) for choice in choices]
        live = [view for view in views if view is not None]
        for choice in choices:
            if is_first(choice) and choice.get("finish_reason"):
                bare = same and len(choices) == 1 and _is_bare(choice)
                self._ending.keep_finish(chunk, choice, tidy(frame) if bare else None)
        if choices and not (any(map(_says, live)) if counted else live):
            return b""
        same = same and all(map(operator.is_, views, choices))
        wire = tidy(frame) if same else encode(dump(chunk | ({"choices": live} if live else {})))
        return self._send(wire, live)

    def _send(self, wire: bytes, choices: list[JSON]) -> bytes:
        deltas = [_delta_of(choice) for choice in choices if is_first(choice)]
        opened = b""
        if any(delta.get("tool_calls") for delta in deltas):
            opened = self._outlet.open()
        text = "".join([_read_words(delta.get("content")) for delta in deltas])
        shows = any(value and key != "role" for delta in deltas for key, value in delta.items())
        return opened + self._outlet.send(wire, text, shows)

    def _view(self, choice: JSON) -> JSON:
        """What the client sees of a choice; itself when nothing changes, None when nothing is left.

        A finish reason never goes out at once: the round may turn out to be a hidden one.
        """
        if not is_first(choice):
            return choice
        fragments = self._collector.add_choice(choice)
        ends = bool(choice.get("finish_reason"))
        delta = _delta_of(choice)
        shown = self._view_delta(delta, fragments, ends)
        if not ends and "message" not in choice and shown is delta:
            return choice
        if not any(shown.values()):
            return None
        hides = "tool_calls" in delta and shown.get("tool_calls") is not delta["tool_calls"]
        seen: JSONObject = (
            {"index": 0} if ends else {k: v for k, v in choice.items() if k != "message"}
        )
        if "logprobs" in choice:
            seen["logprobs"] = None if hides else choice["logprobs"]
        return seen | {"delta": shown, "finish_reason": None}

    def _view_delta(
        self, delta: JSONObject, fragments: list[tuple[OpenCall, JSONObject]], ends: bool
    ) -> JSONObject:
        shown = delta
        if delta.get("role"):
            if self._role_sent:
                shown = {key: value for key, value in delta.items() if key != "role"}
            self._role_sent = True
        text = delta.get("content")
        if self._outlet.gap and text and isinstance(text, str):
            self._outlet.gap = False
            shown = shown | {"content": text if text.startswith("\n") else f"\n\n{text}"}
        calls = self._router.show(fragments) + (self._router.close() if ends else [])
        if len(calls) == len(fragments) and all(
            call is fragment for call, (_, fragment) in zip(calls, fragments, strict=True)
        ):
            return shown
        shown = {key: value for key, value in shown.items() if key != "tool_calls"}
        return shown | {"tool_calls": calls} if calls else shown

    def _close_calls(self) -> bytes:
        calls = self._router.close()
        if not calls:
            return b""
        chunk = self._chunk({"tool_calls": calls})
        return self._send(encode(dump(chunk)), chunk["choices"])

    def _hide_usage(self, chunk: JSONObject) -> bool:
        """Take out a usage that isn't the whole turn's; true when that changed the chunk."""
        if "usage" not in chunk or (self._include_usage and chunk["usage"] is None):
            return False
        if self._include_usage:
            chunk["usage"] = None
        else:
            del chunk["usage"]
        return True

    def _calls_shown(self) -> bool | None:
        """Whether the client saw calls; None where it got them, and nothing else, as they came."""
        untouched = self._rounds == 1 and not self._released and self._router.shown
        return None if untouched else self._router.shown > 0

    def _chunk(self, delta: JSONObject) -> JSONObject:
        """A chunk of our own."""
        if not self._role_sent:
            self._role_sent = True
            delta = {"role": "assistant", "content": None} | delta
        chunk = self._head.chunk()
        chunk["choices"] = [{"index": 0, "delta": delta, "finish_reason": None}]
        return chunk | {"usage": None} if self._include_usage else chunk

    def _break_off(self, error: bytes) -> bytes:
        """The last bytes of a failed stream; held text goes out unless the round looks hidden."""
        self._over = True
        opened = b"" if self._router.held else self._outlet.open()
        return opened + self._outlet.send(error + DONE, "", shows=True)


def _shows(delta: Delta) -> bool:
    """Whether there is anything to see but text."""
    return bool(
        delta.reasoning_content or delta.reasoning or delta.reasoning_details or delta.refusal
    )


def _delta_of(choice: JSONObject) -> JSONObject:
    delta = choice.get("delta")
    return delta if isinstance(delta, dict) else {}


def _says(choice: JSON) -> bool:
    return not is_first(choice) or any(_delta_of(choice).values())


def _is_bare(choice: JSONObject) -> bool:
    """Whether a finish choice says nothing else, so that its frame can go out as it came."""
    return "message" not in choice and not _says(choice)


def _read_words(content: JSON) -> str:
    """The text in a content, which some providers send as parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join([text for text in texts if isinstance(text, str)])
