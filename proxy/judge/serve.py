"""Usher as a decision provider: what a client of either dialect asks in, what it is answered out.

Everything here is values; `edge/decisions.py` does the HTTP and the judging between the two.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from proxy.judge.bill import Use
from proxy.judge.failures import Failure
from proxy.judge.questions import Questions, State
from proxy.judge.verdict import Verdict
from proxy.wire import JSON, Headers, JSONObject

Place = tuple[str | int, ...]
"""Where something stands in a request: keys and indexes."""

MAX_QUESTIONS, MAX_OPTIONS, MAX_LEVELS = 400, 255, 10


@dataclass(frozen=True, slots=True)
class Decision:
    """A request that makes sense; `labels` maps our option labels to the client's own values."""

    model: str
    state: State
    questions: Questions
    names: Mapping[str, str | None] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str | bool]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Flaw:
    """What is wrong with a request: where (keys and indexes), what, and a word for it."""

    place: Place
    message: str
    kind: str


class Invalid(Exception):
    """A request that cannot be judged; it names its flaws and never quotes the request."""

    def __init__(self, *flaws: Flaw) -> None:
        super().__init__(flaws[0].message)
        self.flaws = flaws


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a valid request has no answer, for whoever words it in a dialect."""

    status: int
    kind: str
    message: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Served:
    """A whole response."""

    status: int
    headers: Headers
    body: bytes


_TROUBLES: Mapping[Failure, tuple[int, str, str]] = {
    Failure.TIMEOUT: (504, "timeout_error", "The decision took longer than its deadline."),
    Failure.RATE_LIMITED: (429, "rate_limit_error", "The decision model is rate limited."),
    Failure.TOO_LARGE: (413, "request_too_large", "The state is too large for the model."),
    Failure.BREAKER_OPEN: (529, "overloaded_error", "The decision model is failing; try later."),
    Failure.BAD_REQUEST: (400, "bad_request", "The model does not exist or refuses the request."),
    Failure.UNSUPPORTED: (
        503,
        "not_configured",
        "No configured judge answers this kind of question; see classification.chat.model.",
    ),
    Failure.DISABLED: (503, "not_configured", "The decision model's key or address is refused."),
    Failure.UNAUTHORIZED: (503, "not_configured", "The decision model refuses its key."),
    Failure.PAYMENT: (503, "not_configured", "The decision model's account has no credit."),
}
_OTHERWISE = (502, "upstream_error", "The decision model gave no usable answer.")


def find_trouble(verdict: Verdict) -> Trouble | None:
    """Why a verdict cannot be served whole; None when nothing failed."""
    if verdict.failure is None:
        return None
    status, kind, message = _TROUBLES.get(verdict.failure, _OTHERWISE)
    wait = verdict.retry_after
    if wait is None and status in {429, 529}:
        wait = 1.0
    return Trouble(status, kind, message, wait)


def respond(status: int, body: JSONObject, extra: Headers) -> Served:
    """A JSON response."""
    headers = [(b"content-type", b"application/json"), *extra]
    return Served(status, headers, orjson.dumps(body))


def retry_headers(seconds: float | None) -> Headers:
    """Both spellings of when to come back."""
    if seconds is None:
        return []
    return [
        (b"retry-after", str(max(1, math.ceil(seconds))).encode()),
        (b"retry-after-ms", str(math.ceil(seconds * 1000)).encode()),
    ]


def fact_headers(verdict: Verdict, request_id: str) -> Headers:
    """Where the numbers come from and what they cost; what is unknown is left out."""
    kinds = sorted({verdict.calibration(name) for name in verdict.answers})
    spent = Use(verdict.tokens.prompt, verdict.cost_nano_usd).describe()
    return [
        (b"x-typesafe-request-id", request_id.encode()),
        (b"x-usher-calibration", ",".join(kinds).encode() or b"none"),
        *([(b"x-usher-classification", spent)] if spent else []),
    ]


def read_object(body: bytes) -> JSONObject:
    """The request's JSON object; raises Invalid."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Invalid(Flaw((error.pos,), "The body is not valid JSON.", "json_invalid")) from None
    if not isinstance(found, dict):
        raise Invalid(Flaw((), "The body must be an object.", "model_attributes_type"))
    return found


def read_text(value: JSON, place: Place) -> JSON:
    """Instructions or a description: text, object or array, or nothing; raises Invalid."""
    if value is None or isinstance(value, str | dict | list):
        return value
    raise Invalid(Flaw(place, "Must be a string, an object or an array.", "text_type"))


def read_model(body: JSONObject) -> str:
    """The model's name; raises Invalid."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise Invalid(Flaw(("model",), "A model name is required.", "string_type"))
    return model


def merge_models(upstream: JSON, names: Mapping[str, str], created: str) -> JSONObject:
    """The upstream's model list that both OpenAI's and TypeSafe's clients can read.

    `names` are the decision models that are served here, with a description each.
    """
    data = upstream.get("data") if isinstance(upstream, dict) else None
    listed = data if isinstance(data, list) else []
    ids = [row["id"] for row in listed if isinstance(row, dict) and isinstance(row.get("id"), str)]
    described = {**dict.fromkeys(ids, "A chat model that emulates decisions."), **names}
    models = [
        {"name": name, "description": text, "release_date": created}
        for name, text in described.items()
    ]
    kept = upstream if isinstance(upstream, dict) else {}
    return {"object": "list", **kept, "data": listed, "models": models}
