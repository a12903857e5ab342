"""Headers and the body's own object decide what one request may do."""

import pytest

from proxy.errors import BadRequest
from proxy.plan.policy import read_policy
from proxy.settings import Deferral, Settings
from proxy.wire import Headers, JSONObject, Repeated

_SETTINGS = Settings()


def test_without_wishes_the_settings_hold() -> None:
    """A plain client gets what the operator configured."""
    settings = Settings(deferral=Deferral(mode="observe"))
    policy = read_policy(settings, [(b"accept", b"*/*")], None)
    assert (policy.deferral, policy.defer, policy.prediction) == ("observe", "auto", "on")


def test_a_header_wins_over_the_body() -> None:
    """The header is the more specific wish: a proxy in between may have added it."""
    headers: Headers = [(b"x-usher-defer", b"off")]
    policy = read_policy(_SETTINGS, headers, {"defer": "all", "keep": ["a", "b*"]})
    assert policy.defer == "off"
    assert policy.deferral == "off"
    assert policy.keep == ("a", "b*")


@pytest.mark.parametrize(
    ("headers", "wishes", "param"),
    [
        ([(b"x-usher-defer", b"banana")], None, "defer"),
        ([], {"predict": "maybe"}, "predict"),
        ([], {"no-such-thing": 1}, "no-such-thing"),
        ([(b"x-usher-timeout", b"soon")], None, "timeout"),
        ([(b"x-usher-timeout", b"-1")], None, "timeout"),
        ([(b"x-usher-timeout", b"inf")], None, "timeout"),
        ([(b"x-usher-user-id", b"bob"), (b"X-Usher-User-Id", b"alice")], None, "user-id"),
        ([(b"x-usher-user-id", b"alice"), (b"x-usher-user-id", b"")], None, "user-id"),
    ],
)
def test_a_wrong_wish_is_refused_by_name(
    headers: Headers, wishes: JSONObject | None, param: str
) -> None:
    """A misspelt option must not be ignored: the caller believes that it holds."""
    with pytest.raises(BadRequest) as caught:
        read_policy(_SETTINGS, headers, wishes)
    assert caught.value.param == param


def test_the_same_wish_twice_is_one() -> None:
    """A proxy may copy a header; only what says two things is refused."""
    headers = [(b"x-usher-user-id", b"bob"), (b"x-usher-user-id", b" bob\t")]
    assert read_policy(_SETTINGS, headers, {"user-id": "eva"}).user_id == "bob"


def test_a_name_is_not_trimmed_beyond_what_http_calls_white_space() -> None:
    """Else two users would be one."""
    assert read_policy(_SETTINGS, [(b"x-usher-user-id", b"bob\xa0")], None).user_id == "bob\xa0"


def test_the_key_of_the_door_is_no_wish() -> None:
    """A caller whose Authorization is the provider's has its gateway key in x-usher-key."""
    headers: Headers = [(b"X-Usher-Key", b"sk-usher-1"), (b"x-usher-keep", b"a")]
    policy = read_policy(_SETTINGS, headers, None)
    assert policy.keep == ("a",)
    with pytest.raises(BadRequest):
        read_policy(_SETTINGS, [], {"key": "sk-usher-1"})


def test_every_wish_is_understood() -> None:
    """All documented options reach the policy."""
    policy = read_policy(
        _SETTINGS,
        [(b"X-Usher-Predict", b"off"), (b"x-usher-keep", b" a , ,b ")],
        {
            "memory": "read",
            "triage": "shadow",
            "user-id": "u1",
            "conversation-id": "c1",
            "timeout": 2.5,
            "events": "attachment",
            "explain": True,
        },
    )
    assert policy.prediction == "off"
    assert policy.keep == ("a", "b")
    assert (policy.memory, policy.triage, policy.events) == ("read", "shadow", "attachment")
    assert (policy.user_id, policy.conversation_id) == ("u1", "c1")
    assert policy.timeout == 2.5
    assert policy.explain


def test_options_of_repeated_headers_are_read_once() -> None:
    """The body's own are read each time, and a contradiction is one each time."""
    notes: dict[str, object] = {}
    fields: Headers = [(b"x-usher-defer", b"off")]
    for keep in ("a", "b"):
        policy = read_policy(_SETTINGS, Repeated(fields, 2, notes), {"keep": keep})
        assert (policy.defer, policy.keep) == ("off", (keep,))
    torn = Repeated([*fields, (b"x-usher-defer", b"all")], 2, {})
    for _ in range(2):
        with pytest.raises(BadRequest):
            read_policy(_SETTINGS, torn, None)
