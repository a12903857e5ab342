"""A chat request goes in; the assistant message of a deterministic stand-in model comes out.

What it does with the newest user message, clause by clause: call the tool that fits; search when
none of the loaded ones does but the listing promises more; else answer in text. After the results
of its calls it answers in text that repeats them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from proxy.upstream.standin import match
from proxy.upstream.standin.arguments import fill
from proxy.upstream.standin.match import Offer
from proxy.upstream.standin.request import Asked, read_request
from proxy.upstream.standin.words import ACTIONS, COMMON, VERBS, content, split, translate, weigh
from proxy.wire import JSON, JSONObject

_STEPS = re.compile(r"[,;.]?\s+(?:and\s+)?then\s+|その後、?|それから、?", re.IGNORECASE)
_CLAUSES = re.compile(r",?\s+and also\s+", re.IGNORECASE)
_THANKS = re.compile(r"\b(?:thanks|thank you|danke|merci|gracias)\b|ありがとう|谢谢", re.IGNORECASE)
MAX_CALLS, MAX_QUERY_WORDS, MAX_RESULT_CHARS = 16, 8, 600


@dataclass(frozen=True, slots=True)
class Call:
    """A function to call; `arguments` are the JSON text that the client will receive."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Said:
    """The model's next message: text, or calls."""

    text: str | None
    calls: tuple[Call, ...] = ()


def answer(body: JSONObject) -> Said:
    """Answer a request that was found valid."""
    asked = read_request(body)
    calls = tuple(_decide(asked))
    if calls:
        return Said(None, calls if asked.parallel else calls[:1])
    return Said(_say(asked))


def _decide(asked: Asked) -> list[Call]:
    if asked.choice.kind == "none" or len(asked.history.called) >= MAX_CALLS:
        return []
    if asked.choice.kind == "named":
        return [_named_call(asked)]
    calls = _next_step(asked)
    forced = asked.choice.kind == "required" or asked.choice.mode == "required"
    return calls or (list(_forced_call(asked)) if forced else [])


def _next_step(asked: Asked) -> list[Call]:
    """The calls of the first step that is not done yet, or one search for what it lacks."""
    done = list(asked.history.called)
    for step in _STEPS.split(asked.history.text):
        open_clauses = [c for c in _CLAUSES.split(step) if not _was_served(c, done, asked)]
        chosen = [(clause, match.choose(asked.offers, weigh(clause))) for clause in open_clauses]
        lacking = [clause for clause, best in chosen if _needs_search(clause, best, asked)]
        if lacking and asked.search and not asked.history.searched:
            return [_search_call(asked.search, lacking, asked)]
        if any(best for _, best in chosen):
            return [_real_call(best, clause, asked) for clause, best in chosen if best]
    return []


def _was_served(clause: str, done: list[str], asked: Asked) -> bool:
    """Whether the oldest call not accounted for is this clause's; strikes it off if so."""
    if not done:
        return False
    known = (offer for offer in asked.offers if offer.name == done[0])
    if match.fits(next(known, Offer(done[0], "", {})), weigh(clause)):
        del done[0]
        return True
    return False


def _needs_search(clause: str, best: Offer | None, asked: Asked) -> bool:
    """Whether the listing holds something better, or nothing fits what is clearly a request."""
    wanted = weigh(clause)
    hint, hint_score = _best_listed(wanted, asked)
    if best is not None:
        own = match.name_score(match.read_purpose(best.name, "").name, frozenset(), wanted)
        return hint is not None and hint_score > own + match.BETTER_NAME
    things = wanted.keys() - ACTIONS - COMMON
    return bool(things) and (hint is not None or bool(wanted.keys() & ACTIONS))


def _best_listed(wanted: dict[str, float], asked: Asked) -> tuple[str | None, float]:
    """The name in the listing, not loaded yet, that says most of what is wanted."""
    loaded = {offer.name for offer in asked.offers}
    things = wanted.keys() - ACTIONS - COMMON
    best: tuple[str | None, float] = (None, 0.0)
    for name in asked.listed:
        words = match.read_purpose(name, "").name
        value = match.name_score(words, frozenset(), wanted)
        if name not in loaded and things & words and value > best[1]:
            best = (name, value)
    return best


def _search_call(search: Offer, clauses: list[str], asked: Asked) -> Call:
    queries = [_keywords(clause, asked) for clause in clauses]
    return _call(search.name, {"queries": queries})


def _keywords(clause: str, asked: Asked) -> str:
    """The clause's own words in English, and those of the best name in the listing."""
    words = content(translate(clause))[:MAX_QUERY_WORDS]
    hint, _ = _best_listed(weigh(clause), asked)
    said = {VERBS.get(word, word) for word in words}
    extra = [word for word in split(hint or "") if VERBS.get(word, word) not in said]
    return " ".join(dict.fromkeys([*words, *extra]))


def _real_call(offer: Offer, clause: str, asked: Asked) -> Call:
    arguments = fill(offer.schema, clause)
    if asked.bridge and offer.name in asked.listed:
        return _call(asked.bridge.name, {"name": offer.name, "arguments": arguments})
    return _call(offer.name, arguments)


def _named_call(asked: Asked) -> Call:
    name = asked.choice.names[0]
    if asked.search and name == asked.search.name:
        return _search_call(asked.search, [asked.history.text], asked)
    offer = next((o for o in asked.offers if o.name == name), Offer(name, "", {}))
    return _call(name, fill(offer.schema, asked.history.text))


def _forced_call(asked: Asked) -> Iterator[Call]:
    """What a model that has to call something calls."""
    if asked.search and not asked.history.searched:
        yield _search_call(asked.search, [asked.history.text], asked)
        return
    best = match.rank_first(asked.offers, weigh(asked.history.text))
    if best:
        yield _real_call(best, asked.history.text, asked)


def _call(name: str, arguments: JSON) -> Call:
    return Call(name, orjson.dumps(arguments if isinstance(arguments, dict) else {}).decode())


def _say(asked: Asked) -> str:
    history = asked.history
    if asked.schema is not None:
        value = fill({"type": "object", **asked.schema}, history.text)
        return orjson.dumps(value).decode()
    if history.results:
        return "\n".join(f"{n} returned: {text[:MAX_RESULT_CHARS]}" for n, text in history.results)
    if _THANKS.search(history.text):
        return "You are welcome."
    return f"You said: {history.text[:MAX_RESULT_CHARS]}"
