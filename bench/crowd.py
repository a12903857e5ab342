"""`python -m bench.crowd`: what a request costs as tenants and worker processes grow.

Tenants: each has a key and sends the same 100 tools, the first time and then again; what is kept
for them must not grow beyond `caches.catalogue_bytes`. Workers: requests per second, as far as the
machine has cores for gateway, client and upstream.
"""

import itertools
import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import msgspec
import orjson

from bench.bodies import ASK, many_tools
from bench.measure import Bench
from bench.process import Running, free_port, running
from bench.programs import build_programs
from bench.servers import Server, Site, usher
from bench.work import Work
from proxy.keys.key import GatewayKey, new_secret
from proxy.keys.keyfile import Content

TENANTS = (1, 10, 100, 1_000, 10_000)
WORKERS = (1, 2, 4)
WARM = 300
"""Requests of the measured round, spread over the tenants that were served last."""


def main() -> int:
    """Print one line per point."""
    with tempfile.TemporaryDirectory(prefix="usher-crowd-") as name:
        bench = Bench(build_programs(), {}, Path(name))
        with bench.upstream() as upstream:
            for line in itertools.chain(_tenants(bench, upstream), _workers(bench, upstream)):
                print(line, flush=True)
    return 0


def _tenants(bench: Bench, upstream: int) -> Iterator[str]:
    secrets, keys = zip(*(_make_key(number) for number in range(max(TENANTS))), strict=True)
    site = Site(bench.folder / "tenants", upstream, free_port())
    data = site.folder / "data"
    data.mkdir(parents=True)
    (data / "keys.json").write_bytes(msgspec.json.encode(Content(keys=keys)))
    body = {"model": "m", "messages": [{"role": "user", "content": ASK}], "tools": many_tools(100)}
    text = orjson.dumps(body)
    server = usher(site)
    with _started(server, site) as process:
        idle, served = process.rss(), 0
        for count in TENANTS:
            began = process.cpu()
            _ask(site.port, secrets[served:count], text)
            first = (process.cpu() - began) / (count - served) * 1e6
            served = count
            time.sleep(2.0)
            latest = itertools.cycle(secrets[max(0, count - WARM) : count])
            began = process.cpu()
            _ask(site.port, list(itertools.islice(latest, WARM)), text)
            warm = (process.cpu() - began) / WARM * 1e6
            grown = (process.rss() - idle) / 1e6
            yield f"tenants {count:6}  {first:7.0f} µs first  {warm:7.0f} µs again  {grown:5.0f} MB"


def _workers(bench: Bench, upstream: int) -> Iterator[str]:
    bench.bodies["small"] = bench.folder / "small.json"
    body = {"model": "m", "messages": [{"role": "user", "content": ASK}]}
    bench.bodies["small"].write_bytes(orjson.dumps(body))
    work = Work("small", "small", 64, 6_000)
    for count in WORKERS[: max(1, (os.cpu_count() or 1).bit_length())]:
        site = Site(bench.folder / f"workers{count}", upstream, free_port())
        server = usher(site)
        server = replace(server, command=[*server.command, f"--workers={count}"])
        with _started(server, site) as process:
            bench.sample(server, process, work)
            samples = [bench.sample(server, process, work) for _ in range(3)]
        cpu = sorted(sample.cpu for sample in samples)[1]
        rate = sorted(sample.per_second for sample in samples)[1]
        yield f"workers {count:6}  {cpu:8.0f} µs of CPU  {rate:8.0f} requests per second"


def _make_key(number: int) -> tuple[str, GatewayKey]:
    secret, proof = new_secret()
    name = f"tenant-{number}"
    return secret, GatewayKey(name=name, proof=proof, created_at=0.0, tenant=name)


def _started(server: Server, site: Site) -> AbstractContextManager[Running]:
    environ = {**server.environ, "USHER_PREDICTION__RANKER": "lexical"}
    return running(server.command, server.port, server.ready, environ, site.folder / "run")


def _ask(port: int, secrets: Sequence[str], body: bytes) -> None:
    """One request per key, one after the other on one connection."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        reader = connection.makefile("rb")
        for secret in secrets:
            connection.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\n"
                b"host: x\r\ncontent-type: application/json\r\n"
                b"authorization: Bearer %b\r\ncontent-length: %d\r\n\r\n"
                % (secret.encode(), len(body))
                + body
            )
            status = reader.readline()
            if b" 200 " not in status:
                sys.exit(f"the gateway answered {status!r}")
            length = 0
            while (line := reader.readline()) != b"\r\n":
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            reader.read(length)


if __name__ == "__main__":
    sys.exit(main())
