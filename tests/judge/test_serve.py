"""What both dialects of the served endpoints share."""

from typing import Any

import pytest

from proxy.judge.failures import Failure
from proxy.judge.questions import ChoiceAnswer, NoulAnswer
from proxy.judge.serve import (
    Invalid,
    fact_headers,
    find_trouble,
    merge_models,
    read_model,
    read_object,
    read_text,
    respond,
    retry_headers,
)
from proxy.judge.verdict import Verdict
from proxy.ledger.usage import Tokens

STATUSES = {
    Failure.TIMEOUT: 504,
    Failure.RATE_LIMITED: 429,
    Failure.TOO_LARGE: 413,
    Failure.BREAKER_OPEN: 529,
    Failure.BAD_REQUEST: 400,
    Failure.UNSUPPORTED: 503,
    Failure.DISABLED: 503,
    Failure.UNAUTHORIZED: 503,
    Failure.PAYMENT: 503,
    Failure.MALFORMED: 502,
    Failure.NETWORK: 502,
    Failure.SERVER_ERROR: 502,
    Failure.INTERNAL: 502,
    Failure.ABORTED: 502,
}


@pytest.mark.parametrize("failure", list(Failure))
def test_every_failure_has_a_status(failure: Failure) -> None:
    """And a message without a word of the request."""
    trouble = find_trouble(Verdict(failure=failure))
    assert trouble is not None
    assert trouble.status == STATUSES[failure]
    assert trouble.message.endswith(".")


def test_overload_says_when_to_come_back() -> None:
    """The provider's own time, or a second."""
    told = find_trouble(Verdict(failure=Failure.RATE_LIMITED, retry_after=7.2))
    assert told is not None
    assert retry_headers(told.retry_after) == [(b"retry-after", b"8"), (b"retry-after-ms", b"7200")]
    own = find_trouble(Verdict(failure=Failure.BREAKER_OPEN))
    assert own is not None
    assert own.retry_after == 1.0
    assert retry_headers(None) == []
    assert find_trouble(Verdict()) is None


def test_facts_are_headers() -> None:
    """Where the numbers come from and what they cost; an unknown cost is left out."""
    verdict = Verdict(
        {"a": NoulAnswer(0.5, "token"), "b": ChoiceAnswer("x", calibration="verbalized")},
        tokens=Tokens(prompt=1_140),
        cost_nano_usd=47_880,
    )
    headers = dict(fact_headers(verdict, "req-1"))
    assert headers == {
        b"x-typesafe-request-id": b"req-1",
        b"x-usher-calibration": b"token,verbalized",
        b"x-usher-classification": b"tokens=1140;cost=0.000047880",
    }
    unknown = dict(fact_headers(Verdict(cost_nano_usd=None), "r"))
    assert b"x-usher-classification" not in unknown
    assert unknown[b"x-usher-calibration"] == b"none"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff"])
def test_a_body_must_be_an_object(body: bytes) -> None:
    """Broken JSON and everything else."""
    with pytest.raises(Invalid):
        read_object(body)


@pytest.mark.parametrize("model", [None, "", 3])
def test_a_model_is_required(model: Any) -> None:
    """As the dialects' own servers do."""
    with pytest.raises(Invalid, match="model"):
        read_model({"model": model})


def test_texts_may_be_structured() -> None:
    """But are no numbers."""
    assert read_text({"task": "x"}, ()) == {"task": "x"}
    assert read_text(None, ()) is None
    with pytest.raises(Invalid):
        read_text(3, ("questions", "a"))


def test_one_model_list_for_both_kinds_of_client() -> None:
    """`data` as the upstream sent it, `models` with every name and ours."""
    upstream = {"object": "list", "data": [{"id": "gpt-4.1", "object": "model"}, {"id": 3}]}
    merged = merge_models(upstream, {"jev-latest": "Decisions."}, "2026-11-30")
    assert merged["data"] == upstream["data"]
    assert [model["name"] for model in merged["models"]] == ["gpt-4.1", "jev-latest"]
    assert {model["release_date"] for model in merged["models"]} == {"2026-11-30"}
    assert merge_models("no list", {}, "d") == {"object": "list", "data": [], "models": []}


def test_responses_are_json() -> None:
    """With whatever headers there are besides."""
    served = respond(200, {"a": 1}, [(b"x", b"y")])
    assert served.headers == [(b"content-type", b"application/json"), (b"x", b"y")]
    assert served.body == b'{"a":1}'
