"""A request comes in, the same small answer goes out: the floor under what is measured."""

import argparse

import uvicorn
from starlette.types import Receive, Scope, Send

ANSWER = b'{"ok":true}'
HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(ANSWER))]


async def echo(_: Scope, receive: Receive, send: Send) -> None:
    """Read the body and answer."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": ANSWER})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    port = parser.parse_args().port
    uvicorn.run(
        echo, port=port, http="httptools", ws="none", lifespan="off",
        interface="asgi3", access_log=False, log_level="error",
    )  # fmt: skip
