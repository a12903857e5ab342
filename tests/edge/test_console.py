"""The console: a page of the package that browsers may run nothing else on."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from starlette.applications import Starlette

from proxy.edge.console import FOLDER
from tests.edge.driver import ask
from tests.edge.test_admin import gateway

pytestmark = pytest.mark.anyio

FILES = {
    "/usher/ui/": "text/html",
    "/usher/ui/console.css": "text/css",
    "/usher/ui/console.js": "text/javascript",
    "/usher/ui/start.js": "text/javascript",
}


@pytest.fixture(scope="module")
def app() -> Starlette:
    return gateway()


@pytest.mark.parametrize(("url", "kind"), FILES.items())
async def test_the_page_and_its_files_need_no_key(app: Starlette, url: str, kind: str) -> None:
    """They hold no secret: what they show is asked of endpoints that do need one."""
    answered = await ask(app, "GET", url)
    assert answered.status == 200
    assert answered.headers["content-type"].startswith(kind)
    assert answered.body


async def test_a_browser_runs_and_asks_nothing_foreign(app: Starlette) -> None:
    """Neither scripts in the page nor other hosts, frames or forms."""
    headers = (await ask(app, "GET", "/usher/ui/")).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"


async def test_without_its_slash_it_leads_to_the_page(app: Starlette) -> None:
    """The redirect is relative, so it survives a reverse proxy."""
    answered = await ask(app, "GET", "/usher/ui")
    assert (answered.status, answered.headers["location"]) == (307, "ui/")


async def test_nothing_but_the_files_of_the_package(app: Starlette) -> None:
    """No folder is served, so no path leads out of it."""
    for url in ("/usher/ui/../admin.py", "/usher/ui/%2e%2e/admin.py", "/usher/ui/other.js"):
        assert (await ask(app, "GET", url)).status == 404
    assert (await ask(app, "POST", "/usher/ui/")).status == 405


def test_the_files_name_no_other_host_and_write_no_markup() -> None:
    """Everything from the ledger becomes a text node; the key never enters a URL or a cookie."""
    text = "\n".join(path.read_text() for path in FOLDER.iterdir())
    assert not re.search(r"https?://", text)
    for danger in ("innerHTML", "outerHTML", "insertAdjacent", "eval(", "document.cookie"):
        assert danger not in text
    assert "localStorage" not in text
    assert not re.search(r"\son\w+=|style=", (FOLDER / "index.html").read_text())


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_the_script_in_a_made_up_browser() -> None:
    """Pages, escaping, the login and the key are played through in Node, without a browser."""
    check = Path(__file__).with_name("console_check.mjs")
    done = subprocess.run(
        ["node", str(check), str(FOLDER / "console.js")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
