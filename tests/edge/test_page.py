"""A person's page in a browser that has a link and no key."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
from msgspec import structs

from proxy.keys.issue import new_key
from proxy.keys.keyfile import key_path
from proxy.settings import Settings
from tests.fakes.gateway import serve_gateway

MEMORY = {"mode": "on", "page_secret": "a secret of some length"}
USER = {"x-usher-user-id": "ali"}


@pytest.fixture
def app(tmp_path: Path) -> Iterator[httpx.Client]:
    """An application's client with a gateway key that speaks for its users."""
    secret = new_key(key_path(None, tmp_path), partial(structs.replace, trust_user=True), "app")
    settings = Settings.model_validate({"memory": MEMORY, "log": {"level": "error"}})
    with serve_gateway(settings, tmp_path) as port:
        headers = {"authorization": f"Bearer {secret}"}
        base = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=base, headers=headers, timeout=30) as client:
            yield client


def open_page(app: httpx.Client) -> tuple[httpx.Client, str]:
    """A browser, which has no key, and the link that the application made."""
    link = app.post("/usher/memory/link", headers=USER, json={"hours": 1}).json()["url"]
    return httpx.Client(base_url=app.base_url, timeout=30, follow_redirects=True), link


def press(browser: httpx.Client, link: str, **fields: str) -> str:
    """One button of the page."""
    token = link.partition("token=")[2]
    return browser.post("/usher/memory/page", data={"token": token, **fields}).text


def test_reading_and_deleting(app: httpx.Client) -> None:
    """The page shows what is stored; its buttons delete one memory, or everything when sure."""
    for key in ("city", "dog"):
        app.put(f"/usher/memory/{key}", headers=USER, json={"value": f"The user's {key}."})
    browser, link = open_page(app)
    page = browser.get(link)
    assert "The user&#x27;s city." in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["referrer-policy"] == "no-referrer"
    after = press(browser, link, action="delete", key="city")
    assert "city" not in after
    assert "dog" in after
    assert "dog" in press(browser, link, action="forget")
    assert "Nothing is remembered" in press(browser, link, action="forget", sure="on")
    browser.close()


def test_opting_out(app: httpx.Client) -> None:
    """Switched off on the page, memory is off in the chat."""
    browser, link = open_page(app)
    assert "Switch memory on" in press(browser, link, action="disable")
    body = {"model": "m", "messages": [{"role": "user", "content": "remember me"}]}
    reply = app.post("/v1/chat/completions", headers=USER, json=body)
    assert reply.headers["x-usher-memory"] == "off;reason=opted_out"
    assert "Switch memory off" in press(browser, link, action="enable")
    assert "Remember again" in press(browser, link, action="close")
    browser.close()


def test_without_a_valid_link_there_is_no_page(app: httpx.Client) -> None:
    """A forged or foreign token opens and changes nothing; only who has a key makes links."""
    browser, link = open_page(app)
    app.put("/usher/memory/city", headers=USER, json={"value": "Rome"})
    forged = re.sub(r".{6}$", "AAAAAA", link)
    assert browser.get(forged).status_code == 403
    assert (
        browser.post("/usher/memory/page", data={"token": "x", "action": "forget"}).status_code
        == 403
    )
    assert browser.post("/usher/memory/page", content=b"x" * 20_000).status_code == 413
    assert browser.post("/usher/memory/link", headers=USER).status_code == 401
    for hours in (0, 10_000, "1", True):
        refused = app.post("/usher/memory/link", headers=USER, json={"hours": hours})
        assert refused.status_code == 400
    assert len(app.get("/usher/memory", headers=USER).json()["memories"]) == 1
    browser.close()
