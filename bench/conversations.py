"""Long conversations as clients have them, written from real prompts and documents by a seed.

Facts and rules are planted where they are easily lost: in the middle of listings and of long texts.
"""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proxy.wire import JSONObject

DATA = Path("tests/data/retrieval")
CHATTER = ("thanks a lot!", "great, thank you", "ok", "hello again", "perfect, thanks")
RULES = (
    "Never deploy {0} to the {1} region.",
    "All changes of {0} must be approved by {1}.",
    "Only {1} may restart {0}.",
)


@dataclass(slots=True)
class Fact:
    """Something that was said once: what is asked later, and the word that answers it."""

    question: str
    value: str
    rule: bool = False


@dataclass(slots=True)
class Script:
    """A client's whole conversation: the messages, where requests end, what is to be known."""

    messages: list[JSONObject] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)


MIXES = {"mixed": (0.0, 1.0, 170), "chat": (0.0, 0.5, 450), "agent": (0.2, 1.0, 130)}
"""What a conversation is made of, as a stretch of the dice below, and how many turns it has."""


def write_script(seed: int, mix: str = "mixed") -> Script:
    """A conversation of many turns, half of them tool loops; or of words alone, or mostly loops."""
    low, high, turns = MIXES[mix]
    dice = random.Random(seed)
    queries = [q["query"] for q in _load("azure/queries.jsonl")]
    documents = _load("azure/catalogue.jsonl") + _load("bfcl/catalogue.jsonl")
    script = Script()
    script.messages.append({"role": "user", "content": "Help me run our cloud platform."})
    script.requests.append(1)
    script.messages.append({"role": "assistant", "content": "Gladly. Where do we begin?"})
    for turn in range(turns):
        kind = low + (high - low) * dice.random()
        if kind < 0.2:
            _say(script, dice.choice(CHATTER), "You are welcome! " * dice.randint(1, 3))
        elif kind < 0.32:
            _state(script, dice, turn, documents)
        elif kind < 0.5:
            words = dice.choice(documents)["description"]
            question = f"{dice.choice(queries)} What should I know about it? {words[:200]}"
            _say(script, question, _prose(dice, documents, 900))
        else:
            _work(script, dice, turn, (queries, documents))
    script.messages.append({"role": "user", "content": "Let us wrap up this platform work."})
    script.requests.append(len(script.messages))
    return script


def _load(name: str) -> list[JSONObject]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


def _say(script: Script, question: str, answer: str) -> None:
    script.messages.append({"role": "user", "content": question})
    script.requests.append(len(script.messages))
    script.messages.append({"role": "assistant", "content": answer})


def _state(script: Script, dice: random.Random, turn: int, documents: Sequence[JSONObject]) -> None:
    """A decision or a rule of the user, in the middle of other words."""
    thing, value = f"service-{turn}", f"team-{dice.randrange(16**5):05x}"
    filler = _prose(dice, documents, dice.randint(200, 1_000))
    if dice.random() < 0.5:
        said = dice.choice(RULES).format(thing, value)
        script.facts.append(Fact(f"What is the rule about {thing}?", value, rule=True))
    else:
        said = f"We decided that {thing} is owned by {value}."
        script.facts.append(Fact(f"Who owns {thing}?", value))
    _say(
        script,
        f"{filler}\n{said}\n{_prose(dice, documents, 300)}",
        "Understood, I will keep to that. " * 3,
    )


def _work(
    script: Script,
    dice: random.Random,
    turn: int,
    texts: tuple[Sequence[str], Sequence[JSONObject]],
) -> None:
    """A tool loop: one to three steps with listings, then an answer."""
    queries, documents = texts
    script.messages.append({"role": "user", "content": dice.choice(queries)})
    for number in range(dice.randint(1, 3)):
        script.requests.append(len(script.messages))
        name, call = f"vault-{turn}-{number}", f"call_{turn}_{number}"
        rows = [
            {"name": d["name"], "about": d["description"][:160], "state": "ok"}
            for d in dice.sample(list(documents), dice.randint(3, 22))
        ]
        if dice.random() < 0.3:
            value = f"sha-{dice.randrange(16**8):08x}"
            rows.insert(len(rows) // 2, {"name": name, "checksum": value, "size": "12 MB"})
            script.facts.append(Fact(f"Which checksum does {name} have?", value))
        arguments = json.dumps({"target": name, "verbose": True})
        function = {"name": "run", "arguments": arguments}
        script.messages += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": call, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": call, "content": json.dumps(rows)},
        ]
    script.requests.append(len(script.messages))
    script.messages.append({"role": "assistant", "content": _prose(dice, documents, 500)})


def _prose(dice: random.Random, documents: Sequence[JSONObject], most: int) -> str:
    return " ".join(d["description"] for d in dice.sample(list(documents), 6))[:most]
