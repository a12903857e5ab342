"""A person's memories over HTTP, and through the official SDK."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import structs
from openai import OpenAI

from proxy.keys.issue import new_key
from proxy.keys.keyfile import key_path
from proxy.settings import Settings
from tests.fakes.gateway import serve_gateway

SETTINGS = Settings.model_validate({
    "memory": {"mode": "on", "join_ms": 5_000, "token_limit": 200},
    "classification": {"backend": "embedded"},
    "log": {"level": "error"},
})  # fmt: skip

TOO_MUCH = b'{"key":"tea","value":"green"}\n{"key":"long","value":"' + b"word " * 300 + b'"}'


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A gateway with memory on, in front of the stand-in."""
    with serve_gateway(SETTINGS, tmp_path_factory.mktemp("data")) as port:
        yield port


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody at a gateway."""

    port: int
    user: str

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """One request of theirs."""
        headers = {"x-usher-user-id": self.user, **more.pop("headers", {})}
        url = f"http://127.0.0.1:{self.port}{path}"
        return httpx.request(method, url, headers=headers, timeout=30, **more)


def person(port: int, user: str) -> Person:
    return Person(port, user)


def test_a_life_of_a_memory(port: int) -> None:
    """Put, list, rename, undo, delete, export, import: each does what it says."""
    ali = person(port, "life")
    put = ali.ask("PUT", "/usher/memory/city", json={"value": "The user lives in Rome."})
    assert (put.status_code, put.headers["etag"]) == (200, '"1"')
    listed = ali.ask("GET", "/usher/memory").json()
    assert [m["key"] for m in listed["memories"]] == ["city"]
    assert (listed["total_tokens"], listed["token_limit"], listed["usage_percentage"]) == (
        6,
        200,
        3,
    )
    assert (
        ali.ask("POST", "/usher/memory/city/rename", json={"key": "home"}).json()["key"] == "home"
    )
    exported = ali.ask("GET", "/usher/memory/export").content
    assert ali.ask("DELETE", "/usher/memory/home").json()["type"] == "delete"
    assert ali.ask("POST", "/usher/memory/undo").json()["value"] == "The user lives in Rome."
    assert ali.ask("DELETE", "/usher/memory", params={"confirm": "everything"}).json() == {
        "deleted": 1
    }
    assert ali.ask("GET", "/usher/memory").json()["memories"] == []
    eva = person(port, "life-2")
    assert (
        eva.ask("POST", "/usher/memory/import", content=exported).json()["outcomes"][0]["key"]
        == "home"
    )


def test_if_match(port: int) -> None:
    """Who read an older revision changes nothing; `If-None-Match: *` only creates."""
    ali = person(port, "match")
    body = {"value": "vegan"}
    created = ali.ask("PUT", "/usher/memory/diet", json=body, headers={"if-none-match": "*"})
    again = ali.ask(
        "PUT", "/usher/memory/diet", json={"value": "x"}, headers={"if-none-match": "*"}
    )
    stale = ali.ask("PUT", "/usher/memory/diet", json={"value": "x"}, headers={"if-match": '"7"'})
    right = ali.ask("PUT", "/usher/memory/diet", json={"value": "x"}, headers={"if-match": '"1"'})
    statuses = [r.status_code for r in (created, again, stale, right)]
    assert statuses == [200, 412, 412, 200]


@pytest.mark.parametrize(
    ("method", "path", "content", "status"),
    [
        ("PUT", "/usher/memory/city", b"{", 400),
        ("PUT", "/usher/memory/city", b'{"value":3}', 400),
        ("PUT", "/usher/memory/5", b'{"value":"x"}', 400),
        ("PUT", "/usher/memory/card", b'{"value":"4111 1111 1111 1111"}', 400),
        ("PUT", "/usher/memory/big", b'{"value":"' + b"word " * 300 + b'"}', 409),
        ("DELETE", "/usher/memory", b"", 400),
        ("DELETE", "/usher/memory/nothing_there", b"", 404),
        ("POST", "/usher/memory/city/rename", b"{}", 400),
        ("POST", "/usher/memory/undo", b'{"event":"x"}', 400),
        ("POST", "/usher/memory/import", b"[]\n", 400),
        ("POST", "/usher/memory/import", b"{", 400),
        ("POST", "/usher/memory/import", TOO_MUCH, 409),
        ("PATCH", "/usher/memory/preferences", b'{"enabled":"no"}', 400),
        ("PATCH", "/usher/memory/preferences", b'{"retention_days":-1}', 400),
        ("PATCH", "/usher/memory/preferences", b'{"retention_days":true}', 400),
        ("PATCH", "/usher/memory/preferences", b'{"confirm":"maybe"}', 400),
        ("POST", "/usher/memory/confirm", b'{"event":true}', 400),
        ("POST", "/usher/memory/confirm", b'{"accept":"no"}', 400),
        ("POST", "/usher/memory/confirm", b'{"event":7}', 404),
        ("GET", "/usher/memory/events?limit=x", b"", 400),
        ("GET", "/usher/memory/explain?request_id=r", b"", 404),
    ],
)
def test_mistakes(port: int, method: str, path: str, content: bytes, status: int) -> None:
    """Each is an error in OpenAI's shape, or an artifact; nothing is stored."""
    ali = person(port, "mistakes")
    reply = ali.ask(method, path, content=content)
    assert reply.status_code == status
    assert "error" in reply.json() or reply.json()["type"] == "error"
    assert ali.ask("GET", "/usher/memory").json()["memories"] == []


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("DELETE", "/usher/memory/nothing_there", "memory_not_found"),
        ("GET", "/usher/memory/explain?request_id=r", "request_not_found"),
        ("GET", "/usher/memory/no/such/page", "unknown_url"),
    ],
)
def test_what_is_not_there_says_what(port: int, method: str, path: str, code: str) -> None:
    """A key without a memory is told from a URL that does not exist."""
    error = person(port, "nowhere").ask(method, path).json()["error"]
    assert (error["code"], error["type"]) == (code, "invalid_request_error")


def test_without_a_user_there_is_nobody(port: int) -> None:
    """Nobody's memories are not everybody's."""
    reply = httpx.get(f"http://127.0.0.1:{port}/usher/memory")
    assert (reply.status_code, "no_user" in reply.text) == (400, True)


def test_opting_out(port: int) -> None:
    """A person switches memory off and on; the header of their turns tells."""
    ali = person(port, "choice")
    assert ali.ask("PATCH", "/usher/memory/preferences", json={"enabled": False}).json() == {
        "enabled": False,
        "writable": True,
        "retention_days": None,
        "confirm": None,
    }
    body = {"model": "m", "messages": [{"role": "user", "content": "remember me"}]}
    reply = ali.ask("POST", "/v1/chat/completions", json=body)
    assert reply.headers["x-usher-memory"] == "off;reason=opted_out"


@pytest.mark.parametrize("events", [False, True])
def test_the_official_sdk_streams_through_every_artifact(port: int, *, events: bool) -> None:
    """Update, delete and error reach a streaming client without an exception."""
    headers = {"x-usher-user-id": f"sdk{events}"}
    client = OpenAI(
        base_url=f"http://127.0.0.1:{port}/v1", api_key="x", default_headers=headers, max_retries=0
    )
    me = Person(port, f"sdk{events}")
    key = {"authorization": "Bearer x"}
    told: list[dict[str, Any]] = []
    for words in ("Please remember that I live in Lisbon.", "Please forget that I live in Lisbon."):
        stream = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": words}], stream=True
        )
        for chunk in stream:
            extra = (chunk.model_extra or {}).get("usher")
            told += extra["memory"] if extra else []
    me.ask("PUT", "/usher/memory/long", json={"value": "word " * 190}, headers=key)
    raw = me.ask(
        "POST",
        "/v1/chat/completions",
        json={
            "model": "m",
            "stream": True,
            "messages": [{"role": "user", "content": f"Remember that my code is {'word ' * 40}"}],
        },
        headers={**key, **({"x-usher-events": "attachment"} if events else {})},
    )
    assert [artifact["type"] for artifact in told] == ["update", "delete"]
    assert '"error_type":"would_exceed"' in raw.text
    assert ("event: attachment" in raw.text) is events
    client.close()


def test_explain_and_events(port: int) -> None:
    """What the gate said of a message, and what was written, by request id."""
    ali = person(port, "explain")
    body = {"model": "m", "messages": [{"role": "user", "content": "Remember that I like tea."}]}
    reply = ali.ask("POST", "/v1/chat/completions", json=body)
    request_id = reply.json()["usher"]["memory"][0]["request_id"]
    told = ali.ask("GET", "/usher/memory/explain", params={"request_id": request_id}).json()
    assert told["status"] == "pass"
    assert told["score"] >= 0.5
    found = ali.ask("GET", "/usher/memory/events", params={"request_id": request_id}).json()[
        "events"
    ]
    assert [event["op"] for event in found] == ["set"]


def test_keys_part_tenants(tmp_path: Path) -> None:
    """The same user id behind two tenants' keys is two people."""
    path = key_path(None, tmp_path)
    headers = []
    for tenant in ("one", "two"):
        believed = {"tenant": tenant, "trust_user": True}
        secret = new_key(path, partial(structs.replace, **believed), tenant)
        headers.append({"authorization": f"Bearer {secret}", "x-usher-user-id": "ali"})
    with serve_gateway(SETTINGS, tmp_path) as port:
        url = f"http://127.0.0.1:{port}/usher/memory"
        httpx.put(f"{url}/city", headers=headers[0], json={"value": "Rome"})
        seen = [httpx.get(url, headers=one).json()["memories"] for one in headers]
        assert [[m["value"] for m in memories] for memories in seen] == [["Rome"], []]
        assert httpx.get(url, headers={"x-usher-user-id": "ali"}).status_code == 401


def test_a_person_is_asked_first(port: int) -> None:
    """Who wants to confirm everything gets a pending artifact, and stores it with one request."""
    ali = person(port, "careful")
    chosen = ali.ask("PATCH", "/usher/memory/preferences", json={"confirm": "all"}).json()
    assert chosen["confirm"] == "all"
    body = {"model": "m", "messages": [{"role": "user", "content": "Remember that I like tea."}]}
    (told,) = ali.ask("POST", "/v1/chat/completions", json=body).json()["usher"]["memory"]
    assert (told["type"], told["reason"]) == ("pending", "confirm")
    assert ali.ask("GET", "/usher/memory").json()["memories"] == []
    stored = ali.ask("POST", "/usher/memory/confirm", json={"event": told["confirm"]}).json()
    assert (stored["type"], stored["value"]) == ("update", told["value"])
    again = ali.ask("POST", "/usher/memory/confirm", json={"event": told["confirm"]})
    assert again.json()["error"]["code"] == "nothing_to_confirm"


def test_a_person_keeps_things_for_so_long(port: int) -> None:
    """Retention is a choice like the others, and null takes it back."""
    ali = person(port, "brief")
    for days in (30, None):
        chosen = ali.ask("PATCH", "/usher/memory/preferences", json={"retention_days": days})
        assert chosen.json()["retention_days"] == days


@pytest.mark.item("memory/other-endpoints")
@pytest.mark.parametrize("path", ["/v1/responses", "/v1/batches", "/v1/embeddings"])
def test_other_endpoints_have_no_memory(port: int, path: str) -> None:
    """Responses, batches and the like pass through: nothing is judged, stored or put in."""
    ali = person(port, "elsewhere")
    said = [{"role": "user", "content": [{"type": "input_text", "text": "Remember: I am Ali."}]}]
    reply = ali.ask("POST", path, json={"model": "m", "input": said})
    assert "x-usher-memory" not in reply.headers
    assert ali.ask("GET", "/usher/memory/events").json()["events"] == []
