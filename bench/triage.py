"""Long conversations with triage, without, and with a rolling summary: their cost, what is known.

    python -m bench.triage [CONVERSATIONS] [mixed|chat|agent] [--json]

Prompts, tools and documents are real (tests/data/retrieval); the provider is simulated: a cached
prefix token costs 0.1, one written to the cache 1.25, an output token 5, and without a cache every
prompt token 1. The judge reads only what it is shown and is wrong at random; the writer extracts.
"""

import asyncio
import json
import random
import re
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import orjson
import xxhash
from prometheus_client import CollectorRegistry

from bench.conversations import MIXES, Fact, Script, write_script
from proxy.judge.ask import Desk, Judge, Member
from proxy.judge.books import NoPrices
from proxy.judge.breaker import Breaker, Patience
from proxy.judge.cache import AnswerCache
from proxy.judge.job import Attempt, Job, Purpose
from proxy.judge.questions import ChoiceAnswer, Question
from proxy.judge.reading import Reading
from proxy.judge.wording import load_wordings
from proxy.ledger.usage import Row, Tokens
from proxy.observe.log import configure
from proxy.plan.envelope import open_envelope
from proxy.plan.identity import Caller
from proxy.settings import Log
from proxy.state.memory import MemoryStore
from proxy.tools.smalltalk import is_small_talk
from proxy.triage.candidates import Candidate
from proxy.triage.conduct import Conduct, Parts
from proxy.triage.decide import JudgedDecider
from proxy.triage.planner import Planner, Staff
from proxy.triage.session import Layout, Scene, Session
from proxy.triage.store import Plans
from proxy.triage.tally import TriageTally
from proxy.triage.view import CONSTRAINT, FIGURE
from proxy.triage_settings import Limits, Triage
from proxy.wire import JSONObject

READ, WRITE, OUT = 0.1, 1.25, 5.0
JUDGE = 0.014
"""Of the main model's price: $0.042 a million tokens against $3."""
WRITER_IN, WRITER_OUT = 0.33, 1.67
BUDGET = 30_000
SYSTEM = {"role": "system", "content": "You are an operations assistant. " * 60}
TOOLS = orjson.dumps([{"type": "function", "function": {"name": "run", "parameters": {}}}] * 8)


def tokens(value: JSONObject | bytes | str) -> float:
    """Four bytes are a token, for every contestant alike."""
    raw = orjson.dumps(value) if isinstance(value, dict) else value
    return len(raw) / 4


@dataclass(slots=True)
class Bill:
    """What one contestant has spent, in main-model prompt tokens."""

    warm: float = 0.0
    plain: float = 0.0
    aside: float = 0.0
    calls: int = 0
    peak: float = 0.0
    _cache: set[bytes] = field(default_factory=set)

    def request(self, parts: Sequence[bytes], output: float) -> tuple[float, float]:
        """One call of the main model, and its tokens in all and from the cache.

        The longest beginning that was sent before is cached.
        """
        link, cached, total, known = b"", 0.0, 0.0, True
        for part in parts:
            link = xxhash.xxh3_128_digest(link + part)
            size = len(part) / 4
            known = known and link in self._cache
            cached += size if known else 0.0
            total += size
            self._cache.add(link)
        self.warm += READ * cached + WRITE * (total - cached) + OUT * output
        self.plain += total + OUT * output
        self.calls += 1
        self.peak = max(self.peak, total)
        return total, cached

    def side(self, cost: float) -> None:
        """A judge's or a writer's call."""
        self.aside += cost

    @property
    def totals(self) -> tuple[float, float]:
        """With a cache and without."""
        return self.warm + self.aside, self.plain + self.aside


class ViewJudge:
    """Judges by what it is shown, and one time in twenty wrongly."""

    name, model, local = "view", "view", False

    def __init__(self, bill: Bill, seed: int) -> None:
        self._bill = bill
        self._dice = random.Random(seed)

    def answers(self, question: Question) -> bool:  # noqa: ARG002 - the Protocol's
        return True

    async def judge(self, job: Job) -> Reading:
        self._bill.side(JUDGE * (260 + len(orjson.dumps(job.state)) / 4 + 60 * len(job.questions)))
        assert isinstance(job.state, dict)
        answers = {name: self._answer(str(job.state[name])) for name in job.questions}
        reading = Reading(answers, {}, self.model)
        job.record(Attempt(self.name, self.model, "ok", 0.0, 0.0, reading))
        return reading

    def _answer(self, shown: str) -> ChoiceAnswer:
        first = shown.split("\n", 1)[0].removeprefix("user: ")
        if is_small_talk(first) or len(shown) < 120:
            label = "drop"
        elif "result (" in shown or len(shown) > 300 or CONSTRAINT.search(shown):
            label = "compress"
        else:
            label = "keep" if FIGURE.search(shown) else "drop"
        if self._dice.random() < 0.05:
            label = self._dice.choice(("keep", "compress", "drop"))
        rest = {other: 0.1 for other in ("keep", "compress", "drop") if other != label}
        return ChoiceAnswer(label, {label: 0.8, **rest}, 0.7)


class Extractor:
    """Writes notes of what it reads: the first words, and the first lines that bind."""

    def __init__(self, bill: Bill) -> None:
        self._bill = bill

    async def write(
        self,
        candidates: Sequence[Candidate],
        purpose: Purpose,  # noqa: ARG002 - the Protocol's
    ) -> dict[str, str]:
        return {c.link: self._note(c) for c in candidates}

    def _note(self, candidate: Candidate) -> str:
        text = "\n".join(
            "".join(str(call) for call in m.get("calls", ())) + m["content"]
            for m in candidate.messages
        )
        lines = [part for part in re.split(r"\n|(?<=\.) |(?<=\}), ", text) if _binds(part)]
        lines.sort(key=lambda part: "decided" not in part and "checksum" not in part)
        note = " ".join(lines)[:200] or f"{text[:120]} …"
        self._bill.side(WRITER_IN * (100 + min(len(text), 12_000) / 4) + WRITER_OUT * tokens(note))
        return note


def _binds(part: str) -> bool:
    return len(part) < 200 and bool(
        CONSTRAINT.search(part) or FIGURE.search(part) or "decided" in part or "checksum" in part
    )


@dataclass(slots=True)
class Result:
    """One contestant's bill and what it still knows at the end."""

    bill: Bill
    known: float
    rules: float
    plans: int = 0


def run_plain(script: Script) -> Result:
    """Nothing is taken out."""
    bill = Bill()
    for stop in script.requests:
        bill.request(_parts(TOOLS, script.messages[:stop]), _output(script, stop))
    return _judge_memory(script, bill, script.messages, {}, 0)


def run_summary(script: Script, budget: float = BUDGET, keep: int = 20) -> Result:
    """When over budget, the main model sums up all but the newest messages, once more each time.

    As agent frameworks do it: a prompt of its own with the old messages as text, which no cache
    knows, and a summary of 1,500 tokens at most.
    """
    bill, summary, start, summaries = Bill(), "", 0, 0
    for stop in script.requests:
        head = [{"role": "user", "content": f"Summary so far: {summary}"}] if summary else []
        sent = [*head, *script.messages[start:stop]]
        used, _ = bill.request(_parts(TOOLS, sent), _output(script, stop))
        border = _safe_cut(script.messages, stop - keep)
        if used > budget and border > start:
            old = [*head, *script.messages[start:border]]
            text = " ".join(str(m.get("content") or "") for m in old)
            lines = [p for p in re.split(r"\n|(?<=\.) ", text) if _binds(p)]
            summary = (summary[:3_000] + " " + " ".join(reversed(lines)))[:6_000]
            bill.side(sum(tokens(m) for m in old) + 64 + OUT * tokens(summary))
            start, summaries = border, summaries + 1
    final = [{"role": "user", "content": summary}, *script.messages[start:]]
    return _judge_memory(script, bill, final, {}, summaries)


def _safe_cut(messages: Sequence[JSONObject], position: int) -> int:
    while position > 0 and messages[position]["role"] != "user":
        position -= 1
    return max(0, position)


def run_triage(script: Script, settings: Triage, seed: int, *, cache: bool = True) -> Result:
    """The gateway's own triage, with a provider that caches or one that says it does not."""
    return asyncio.run(_run_triage(script, settings, seed, cache=cache))


async def _run_triage(script: Script, settings: Triage, seed: int, *, cache: bool) -> Result:
    bill, plans = Bill(), set[str]()
    later: list[object] = []
    conduct = make_conduct(settings, bill, seed, later)
    session: Session | None = None
    sent: list[JSONObject] = []
    for stop in script.requests:
        body = {"model": "m", "messages": [SYSTEM, *script.messages[:stop]]}
        envelope = open_envelope(orjson.dumps({**body, "tools": orjson.Fragment(TOOLS)}))
        assert envelope is not None
        found = await conduct.open(Scene(envelope, Caller(), "req", "on"))
        assert isinstance(found, Session)
        session = found
        recall = session.recall() if session.recallable else None
        woven = session.weave(Layout(recall=recall is not None))
        await session.send()
        sent = orjson.loads(woven)
        tools = TOOLS + (recall.raw if recall is not None else b"")
        used, cached = bill.request(_parts(tools, sent[1:]), _output(script, stop))
        session.end(Tokens(prompt=round(used), cached=round(cached) if cache else 0))
        plans.add(session.plan.anchor if session.plan and session.acts else "")
        while later:
            await later.pop()  # type: ignore[misc]  # what was spawned
    assert session is not None
    return _judge_memory(script, bill, sent, {"session": session}, len(plans - {""}))


def make_conduct(settings: Triage, bill: Bill, seed: int, later: list[object]) -> Conduct:
    """Triage with the judge and the writer of this benchmark."""
    rows: list[Row] = []
    desk = Desk(NoPrices(), rows.append, AnswerCache(0, 0), configure(Log(level="error")))
    judge = Judge([Member(ViewJudge(bill, seed), Breaker(Patience(3, 30)))], desk)
    decider = JudgedDecider(judge, load_wordings()["triage_action"], settings)
    store = MemoryStore(64 * 1024 * 1024, 1e9)
    planner = Planner(Staff(decider, Extractor(bill)))
    tally = TriageTally(CollectorRegistry())
    return Conduct(
        settings,
        Limits(),
        Parts(Plans(store), Plans(store, "shadow"), planner, tally, later.append),
    )


def _parts(tools: bytes, messages: Iterable[JSONObject]) -> list[bytes]:
    return [tools, orjson.dumps(SYSTEM), *(orjson.dumps(m) for m in messages)]


def _output(script: Script, stop: int) -> float:
    return tokens(script.messages[stop]) if stop < len(script.messages) else 50


def _judge_memory(
    script: Script,
    bill: Bill,
    sent: Sequence[JSONObject],
    tools: dict[str, Session],
    plans: int,
) -> Result:
    """How many facts the model can still answer: by reading, or by three recalls at most."""
    text = "\n".join(str(m.get("content")) + str(m.get("tool_calls") or "") for m in sent)
    session = tools.get("session")
    found = [
        f.value in text or (session is not None and _recalls(f, text, session))
        for f in script.facts
    ]
    rules = [ok for ok, fact in zip(found, script.facts, strict=True) if fact.rule]
    others = [ok for ok, fact in zip(found, script.facts, strict=True) if not fact.rule]
    return Result(bill, sum(others) / len(others), sum(rules) / len(rules), plans)


def _recalls(fact: Fact, text: str, session: Session) -> bool:
    recall = session.recall()
    assert recall is not None
    wanted = set(re.findall(r"[a-z]+-[\d-]+|[a-z]{5,}", fact.question.lower()))
    lines = re.findall(r"^\[(\d+)\] (.*)$", text, re.MULTILINE)
    ranked = sorted(lines, key=lambda line: -sum(len(w) for w in wanted if w in line[1].lower()))
    return any(fact.value in recall.answer(f'{{"n": {number}}}') for number, _ in ranked[:3])


def compare(count: int, mix: str = "mixed") -> dict[str, list[float]]:
    """Figures of so many conversations; costs are shares of those without triage.

    `half` is the summary with half the budget, from which triage works where nothing is cached.
    """
    own = Triage(mode="on", budget_tokens=BUDGET)
    found: dict[str, list[float]] = {}
    for seed in range(count):
        script = write_script(seed, mix)
        plain, summary = run_plain(script), run_summary(script)
        half = run_summary(script, BUDGET / 2)
        triage, bare = (run_triage(script, own, seed, cache=cache) for cache in (True, False))
        figures = {
            "turns": sum(m["role"] == "user" for m in script.messages),
            "calls": plain.bill.calls,
            "tokens": plain.bill.peak,
            "peak": triage.bill.peak,
            "plans": triage.plans,
            "summaries": summary.plans,
            "triage_warm": triage.bill.totals[0] / plain.bill.totals[0],
            "triage_plain": bare.bill.totals[1] / plain.bill.totals[1],
            "triage_plain_same_trigger": triage.bill.totals[1] / plain.bill.totals[1],
            "summary_warm": summary.bill.totals[0] / plain.bill.totals[0],
            "summary_plain": summary.bill.totals[1] / plain.bill.totals[1],
            "summary_plain_half": half.bill.totals[1] / plain.bill.totals[1],
            "summary_warm_half": half.bill.totals[0] / plain.bill.totals[0],
            "aside_of_triage": triage.bill.aside / triage.bill.totals[0],
            "facts": triage.known,
            "rules": triage.rules,
            "facts_plain": bare.known,
            "rules_plain": bare.rules,
            "summary_facts": summary.known,
            "summary_rules": summary.rules,
        }
        for name, value in figures.items():
            found.setdefault(name, []).append(value)
    return found


def main() -> None:
    numbers = [argument for argument in sys.argv[1:] if argument.isdecimal()]
    mix = next((argument for argument in sys.argv[1:] if argument in MIXES), "mixed")
    figures = compare(int(numbers[0]) if numbers else 5, mix)
    if "--json" in sys.argv:
        print(json.dumps(figures))
        return
    print(f"{'':26} {'mean':>11} {'least':>11} {'most':>11}")
    for name, values in figures.items():
        mean = statistics.fmean(values)
        print(f"{name:26} {mean:11,.3f} {min(values):11,.3f} {max(values):11,.3f}")


if __name__ == "__main__":
    main()
