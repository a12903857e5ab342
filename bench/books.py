"""What keys, limits, prices and the ledger cost per request: CPU µs, with and without them.

    python -m bench.books [REQUESTS]

`loop` is the event loop's thread alone, `all` the whole process with the writer and SQLite. Garbage
collection is tuned as the gateway tunes it.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from proxy.edge.head import new_request_id
from proxy.edge.server import settle_memory
from proxy.keys.issue import new_key
from proxy.keys.key import GatewayKey, Limits
from proxy.keys.limiter import Limiter
from proxy.keys.ring import KeyRing
from proxy.ledger.priced import Listeners, PricedLedger, make_ledger
from proxy.ledger.prices import Prices
from proxy.ledger.usage import Row, TurnRow, read_usage
from proxy.settings import Ledger as LedgerSettings

BURST = 100
USAGE = {
    "prompt_tokens": 2200,
    "completion_tokens": 120,
    "total_tokens": 2320,
    "prompt_tokens_details": {"cached_tokens": 1024},
    "completion_tokens_details": {"reasoning_tokens": 0},
}
LIMITS = Limits(rpm=10**9, tpm=10**12, concurrent=100, budget_day=10**15, budget_month=10**16)


class Books:
    """Everything that one request asks of the books."""

    def __init__(self, secret: str, ring: KeyRing, limiter: Limiter, ledger: PricedLedger) -> None:
        self.secret = secret
        self.ring = ring
        self.limiter = limiter
        self.ledger = ledger

    def request(self, _: int) -> None:
        """Key, limits, one call with its price, the turn's line, and the place given back."""
        key = self.ring.find(self.secret)
        assert key is not None
        lease = self.limiter.enter(key, 2000)
        request_id = new_request_id()
        tokens = read_usage(USAGE)
        self.ledger.record(
            Row(
                request_id=request_id,
                tenant=key.tenant,
                key=key.name,
                user="user-1",
                context="main",
                round=1,
                provider="upstream",
                model="gpt-4o",
                answered_model="gpt-4o-2024-08-06",
                prompt_tokens=tokens.prompt,
                cached_tokens=tokens.cached,
                completion_tokens=tokens.completion,
                reasoning_tokens=tokens.reasoning,
                cost_nano_usd=tokens.cost_nano_usd,
                cost_source=None,
                started_at=time.time(),
                latency_ms=812.5,
                tools_sent=5,
                tools_deferred=231,
                tokens_avoided=111_000,
                outcome="ok",
                cache_write_tokens=tokens.cache_write,
            )
        )
        self.ledger.record_turn(
            TurnRow(
                request_id=request_id,
                tenant=key.tenant,
                key=key.name,
                user="user-1",
                model="gpt-4o",
                started_at=time.time(),
                duration_ms=815.0,
                outcome="ok",
                kept=4,
                deferred=231,
                predicted=4,
                discovered=0,
                hits=1,
                unused=3,
                missed=0,
                tokens_avoided=111_000,
                detail={"plan": {"predicted": ["a", "b", "c", "d"], "reason": "close"}},
            )
        )
        lease.leave()


async def measure(request: Callable[[int], None], requests: int) -> dict[str, float]:
    """CPU µs per request, in bursts as a busy gateway has them."""
    loop_before, all_before = time.thread_time(), time.process_time()
    for number in range(requests):
        request(number)
        if number % BURST == BURST - 1:
            await asyncio.sleep(0.02)
    await asyncio.sleep(0.5)
    return {
        "loop": round((time.thread_time() - loop_before) / requests * 1e6, 2),
        "all": round((time.process_time() - all_before) / requests * 1e6, 2),
    }


async def main(requests: int) -> None:
    """Without the books, with them, and the difference."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "keys.json")
        secret = new_key(path, limited, "bench")
        ring, limiter = KeyRing(path), Limiter()
        ring.load()
        ledger = make_ledger(
            LedgerSettings(), Path(folder), Prices(), Listeners(calls=(limiter.charge,))
        )
        await ledger.start()
        books = Books(secret, ring, limiter, ledger)
        books.request(0)
        await ledger.requests(None)
        settle_memory()
        rounds = []
        for _ in range(3):
            off = await measure(nothing, requests)
            on = await measure(books.request, requests)
            rounds.append({name: round(on[name] - off[name], 2) for name in on})
        await ledger.aclose()
        best = {name: min(found[name] for found in rounds) for name in rounds[0]}
        health = msgspec.to_builtins(ledger.health)
        sys.stdout.write(json.dumps({"us_per_request": best, "rounds": rounds} | health) + "\n")


def nothing(_: int) -> None:
    """A gateway without books."""


def limited(key: GatewayKey) -> GatewayKey:
    """A key with every limit there is."""
    return msgspec.structs.replace(key, limits=LIMITS)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
