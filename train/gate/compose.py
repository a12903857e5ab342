"""Lists of phrases in; labelled conversations that are made of them out, the same ones every time.

A list says what a phrase *does*: states a fact, asks to keep it, offers, accepts, quotes. The label
follows from how they are put together, so one line of a list stands for many situations.
"""

import math
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

Phrases = dict[str, list[str]]
Row = dict[str, Any]

_HEAD = re.compile(r"\[(\w+)\]")
_WRITTEN = re.compile(r"([+-]) (?:\[(.*?)\] )?(.+)")
_MOST_WAYS = 6
_CHOICE = re.compile(r"\{([^{}]*\|[^{}]*)\}")


def read_phrases(path: Path) -> Phrases:
    """A file of sections, one phrase a line."""
    found: Phrases = {}
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        head = _HEAD.fullmatch(line.strip())
        if head:
            lines = found.setdefault(head[1], [])
        elif line.strip():
            lines.append(line.strip())
    return found


class Composer:
    """Makes rows of one language."""

    def __init__(self, lang: str, phrases: Phrases, seed: int = 0) -> None:
        self._lang = lang
        self._lists = phrases
        self._random = random.Random(f"{lang}{seed}")  # noqa: S311 - data, not secrets
        spaced = lang not in {"ja", "zh-Hans", "zh-Hant", "th"}
        self._space = " " if spaced else ""

    def rows(self) -> Iterator[Row]:
        """Every kind of situation."""
        yield from self._alone()
        yield from self._mixed()
        yield from self._long()
        yield from self._answers()
        yield from self._quoted()
        yield from self._wide()
        yield from self._talks()

    def _of(self, name: str) -> list[str]:
        return self._lists.get(name, [])

    def _some(self, name: str, count: int) -> list[str]:
        """Phrases of a list, each used equally often."""
        given = self._of(name)
        if not given:
            return []
        pool: list[str] = []
        while len(pool) < count:
            again = given[:]
            self._random.shuffle(again)
            pool += again
        return pool[:count]

    def _request(self) -> str:
        if self._random.random() < 0.5 or not self._of("that"):
            return self._random.choice(self._of("req"))
        frame, fact = self._random.choice(self._of("that")), self._random.choice(self._of("fact"))
        return frame.replace("{f}", fact)

    def _row(self, text: str, label: int, kind: str, *before: str) -> Row:
        roles = ("user", "assistant")
        context = [
            {"role": roles[(i + len(before)) % 2], "content": said} for i, said in enumerate(before)
        ]
        return {
            "context": context,
            "latest": self._vary(text),
            "label": label,
            "kind": kind,
            "lang": self._lang,
        }

    def _vary(self, text: str) -> str:
        """As people type: now and then without capitals, without a full stop, with a slip."""
        dice = self._random.random()
        if dice < 0.12:
            text = text.lower().rstrip(".。")
        elif dice < 0.2:
            text = text.rstrip(".。!！")
        elif dice < 0.26 and len(text) > 12:
            at = self._random.randrange(2, len(text) - 2)
            text = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
        return text

    def _alone(self) -> Iterator[Row]:
        plain = self._of("plain") or ["…"]
        for fact in self._of("fact"):
            yield self._row(fact, 0, "fact")
            yield self._row(fact, 0, "fact", self._random.choice(plain))
        for frame in self._of("that"):
            for fact in self._some("fact", 3):
                yield self._row(frame.replace("{f}", fact), 1, "that")
        for name, label in (("req", 1), ("neg", 0)):
            for text in self._of(name):
                yield self._row(text, label, name)
                if self._random.random() < 0.4:
                    yield self._row(text, label, name, self._random.choice(plain))
        for frame in self._of("scope"):
            for text in self._some("scoped", 3):
                yield self._row(frame.replace("{r}", text), 0, "scope")
        for frame in self._of("tell"):
            for text in self._some("told", 3):
                yield self._row(frame.replace("{r}", text), 0, "tell")

    def _mixed(self) -> Iterator[Row]:
        count = 3 * len(self._of("task"))
        for task in self._some("task", count):
            request = self._request()
            parts = [task, request] if self._random.random() < 0.7 else [request, task]
            yield self._row(self._join(parts), 1, "mixed")
        for task, fact in zip(self._some("task", count), self._some("fact", count), strict=True):
            parts = [task, fact] if self._random.random() < 0.5 else [fact, task]
            yield self._row(self._join(parts), 0, "mixed_fact")

    def _long(self) -> Iterator[Row]:
        count = 2 * len(self._of("filler"))
        for i in range(2 * count):
            parts = self._some("filler", self._random.randint(2, 5))
            parts += self._some("fact", self._random.randint(0, 2))
            self._random.shuffle(parts)
            label = i % 2
            if label:
                parts.insert(self._random.choice((len(parts), len(parts) // 2, 0)), self._request())
            elif self._random.random() < 0.7:
                parts.insert(
                    self._random.choice((len(parts), 0)), self._random.choice(self._of("neg"))
                )
            yield self._row(self._join(parts), label, "long")

    def _answers(self) -> Iterator[Row]:
        yes, no = self._of("yes"), self._of("no")
        for offer in self._of("offer"):
            for text in self._some("yes", 5):
                yield self._row(text, 1, "accept", self._before(offer))
            for text in self._some("no", 4):
                yield self._row(text, 0, "decline", self._before(offer))
            for text in self._some("task", 1) + self._some("neg", 1):
                yield self._row(text, 0, "turns_away", self._before(offer))
            yield self._row(self._request(), 1, "accept_long", self._before(offer))
        for asked in self._of("ask"):
            for text in self._some("yes", 5):
                yield self._row(text, 0, "other_yes", self._before(asked))
            for text in self._some("no", 2):
                yield self._row(text, 0, "other_no", self._before(asked))
        for said in self._of("saved"):
            for text in self._some("thanks", 4) + self._some("task", 1) + self._some("fact", 1):
                yield self._row(text, 0, "after_saved", said)
            for text in self._some("more", 4):
                yield self._row(text, 1, "more", said)
        for said in self._of("plain"):
            for text in self._some("thanks", 2) + self._some("answer", 3) + self._some("yes", 2):
                yield self._row(text, 0, "small", said)
        for text in [*yes, *no, *self._of("thanks")]:
            yield self._row(text, 0, "bare")
        for name in ("req", "neg", "task"):
            for text in self._some(name, 24):
                said = self._random.choice(self._of("ask") + self._of("saved") + self._of("plain"))
                yield self._row(text, int(name == "req"), f"{name}_later", said)

    def _before(self, question: str) -> str:
        """Assistants say something before they ask."""
        if self._random.random() < 0.5 and self._of("plain"):
            return self._join([self._random.choice(self._of("plain")), question])
        return question

    def _quoted(self) -> Iterator[Row]:
        for frame in self._of("quote"):
            for _ in range(6):
                yield self._row(frame.replace("{q}", self._request()), 0, "quote")

    def _wide(self) -> Iterator[Row]:
        """Lines with choices in braces, a few ways through each."""
        plain = self._of("plain")
        for label in (0, 1):
            for line in self._of(f"wide{label}"):
                for number in range(_ways(line)):
                    text = self._choose(line)
                    before = [self._random.choice(plain)] if number % 4 == 0 else []
                    yield self._row(text, label, "wide", *before)

    def _talks(self) -> Iterator[Row]:
        """The same for answers to something that the assistant said."""
        for label in (0, 1):
            for line in self._of(f"talk{label}"):
                said, _, text = line.partition(" >> ")
                for _ in range(_ways(line)):
                    yield self._row(self._choose(text), label, "talk", self._choose(said))

    def _choose(self, line: str) -> str:
        return _CHOICE.sub(lambda m: self._random.choice(m[1].split("|")), line).strip()

    def _join(self, parts: Sequence[str]) -> str:
        return self._space.join(
            part if part[-1] in ".!?。？！…" else part + ("。" if not self._space else ".")
            for part in parts
        )


def _ways(line: str) -> int:
    """How many rows a line with choices is worth."""
    ways = math.prod(len(match[1].split("|")) for match in _CHOICE.finditer(line))
    return min(_MOST_WAYS, max(1, round(math.sqrt(ways))))


def compose(folder: Path) -> list[Row]:
    """The rows of all languages."""
    rows: list[Row] = []
    for path in sorted(folder.glob("*.txt")):
        rows += Composer(path.stem, read_phrases(path)).rows()
    return rows


def read_written(folder: Path) -> Iterator[Row]:
    """Rows that were written out: `+` or `-`, maybe the assistant's text in brackets, the message."""
    for path in sorted(folder.glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            match = _WRITTEN.fullmatch(line)
            if not match:
                raise ValueError(f"{path.name}: {line}")
            said = [{"role": "assistant", "content": match[2]}] if match[2] else []
            label = int(match[1] == "+")
            yield {"context": said, "latest": match[3], "label": label, "lang": path.stem}
