"""Settings, headers and the `usher` object come in; what this one request may do goes out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, cast

from proxy.errors import BadRequest
from proxy.settings import Mode, Settings
from proxy.wire import Headers, JSONObject, Repeated

_PREFIX = b"x-usher-"
_BEGINNINGS = (b"x-u", b"X-U", b"X-u", b"x-U")
_KEY = b"x-usher-key"
_NOTE = "options"
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "defer": ("auto", "off", "all"),
    "predict": ("on", "off"),
    "memory": ("off", "read", "write", "full"),
    "triage": ("off", "on", "shadow"),
    "events": ("attachment",),
    "explain": ("1", "true", "0", "false"),
}
_FREE = ("keep", "user-id", "conversation-id", "app", "project", "timeout")


@dataclass(frozen=True, slots=True)
class Policy:
    """What one request may do; the request's own wishes already folded in."""

    defer: Literal["auto", "off", "all"] = "auto"
    deferral: Mode = "on"
    prediction: Mode = "on"
    keep: tuple[str, ...] = ()
    memory: str | None = None
    triage: str | None = None
    user_id: str | None = None
    conversation_id: str | None = None
    app: str | None = None
    project: str | None = None
    timeout: float | None = None
    events: str | None = None
    explain: bool = False


def read_policy(
    settings: Settings,
    headers: Headers,
    wishes: JSONObject | None,
    fixed: Mapping[str, str] | None = None,
) -> Policy:
    """The policy of a request.

    `wishes` is the body's top-level `usher` object, whose keys are the header names without their
    prefix; a header wins over it, and what is `fixed` for the caller's key wins over both. Raises
    BadRequest for a value that is none of the choices.
    """
    asked = _collect_wishes(headers, wishes)
    if fixed:
        asked.update(fixed)
    if not asked:
        return _usual(settings.deferral.mode, settings.prediction.mode)
    for name, value in asked.items():
        _check_wish(name, value)
    return Policy(
        defer=cast("Literal['auto', 'off', 'all']", asked.get("defer", "auto")),
        deferral="off" if asked.get("defer") == "off" else settings.deferral.mode,
        prediction="off" if asked.get("predict") == "off" else settings.prediction.mode,
        keep=tuple(_split_names(asked.get("keep", ""))),
        memory=asked.get("memory"),
        triage=asked.get("triage"),
        user_id=asked.get("user-id") or None,
        conversation_id=asked.get("conversation-id") or None,
        app=asked.get("app") or None,
        project=asked.get("project") or None,
        timeout=_read_seconds(asked.get("timeout")),
        events=asked.get("events"),
        explain=asked.get("explain") in ("1", "true"),
    )


@lru_cache(maxsize=16)
def _usual(deferral: Mode, prediction: Mode) -> Policy:
    """The policy of a request without wishes: one object for all of them."""
    return Policy(deferral=deferral, prediction=prediction)


def _collect_wishes(headers: Headers, wishes: JSONObject | None) -> dict[str, str]:
    asked: dict[str, str] = {}
    for key, value in (wishes or {}).items():
        if isinstance(value, bool):
            asked[key] = "true" if value else "false"
        elif isinstance(value, list):
            asked[key] = ",".join(str(item) for item in value)
        elif value is not None:
            asked[key] = str(value)
    named = _named_in(headers)
    return {**asked, **named} if named else asked


def _named_in(headers: Headers) -> Mapping[str, str]:
    """The options in the headers; of repeated ones, those that were found then."""
    if not isinstance(headers, Repeated):
        return _read_options(headers)
    known: Mapping[str, str] | None = headers.notes.get(_NOTE)
    if known is None:
        known = headers.notes[_NOTE] = _read_options(headers)
    return known


def _read_options(headers: Headers) -> Mapping[str, str]:
    named: dict[str, str] = {}
    for name, raw in headers:
        if name.startswith(_BEGINNINGS) and name[:8].lower() == _PREFIX and name.lower() != _KEY:
            option, value = name[8:].decode("latin-1").lower(), raw.decode("latin-1").strip(" \t")
            if named.setdefault(option, value) != value:
                raise BadRequest(
                    f"x-usher-{option} is there twice and says two things", param=option
                )
    return named


def _check_wish(name: str, value: str) -> None:
    choices = _CHOICES.get(name)
    if choices is None:
        if name not in _FREE:
            known = ", ".join(sorted((*_CHOICES, *_FREE)))
            raise BadRequest(f"unknown option x-usher-{name}; known: {known}", param=name)
    elif value not in choices:
        raise BadRequest(f"x-usher-{name} must be one of {', '.join(choices)}", param=name)


def _read_seconds(value: str | None) -> float | None:
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise BadRequest("x-usher-timeout must be a positive number of seconds", param="timeout")
    return seconds


def _split_names(value: str) -> Iterable[str]:
    return (name.strip() for name in value.split(",") if name.strip())
