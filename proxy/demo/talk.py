"""Nothing comes in; 120 conversations of 713 messages, two of them requests to remember, out."""

import random
from collections.abc import Iterator
from typing import Final

CONVERSATIONS, TURNS = 120, 713
REQUESTS: Final = {
    17: "Please remember that I prefer answers in Japanese",
    88: "I moved to Osaka, keep that in mind for next time",
}
"""Those that ask to remember, by the number of their conversation."""

_OPENINGS: Final = (
    "Which keywords do my competitors rank for?",
    "Can you help me draft an email to a supplier?",
    "I work as a product designer, what should my portfolio show?",
    "Summarise this article in three sentences.",
    "What is the capital of Peru?",
    "How do I centre a div?",
    "Write a haiku about the sea.",
    "Plan a weekend in Lyon for two.",
    "My name is Ali, nice to meet you.",
    "Explain closures in JavaScript.",
    "Which laptop is good for video editing?",
    "Fix the typo in this sentence: I has a dog.",
    "What's a good substitute for eggs?",
    "Translate good evening into Czech.",
    "How does a heat pump work?",
    "Give me a regex for dates.",
    "Who wrote The Trial?",
    "Compare these two offers for me.",
    "What should I cook with lentils?",
    "Convert 12 miles to kilometres.",
)
_NEXT: Final = (
    "thanks, that was helpful",
    "shorter please",
    "Can you make it a table?",
    "and in German?",
    "Why is that?",
    "Give me another example.",
    "ok",
    "What about the second point?",
    "I like the first version better.",
    "Can you add a source?",
    "Make it sound friendlier.",
    "no, the other one",
    "How long does that take?",
    "And the price?",
    "Explain it like I'm five.",
    "What would you choose?",
    "Use bullet points this time.",
    "great, go on",
    "Is that still true in 2026?",
    "Can you check the numbers again?",
    "Which of them is faster?",
    "Don't forget the units.",
    "Shorten the title.",
    "hm, I am not sure",
    "What did you mean by that?",
)


def hold_talks() -> Iterator[list[str]]:
    """The user's messages of each conversation, always the same ones."""
    dice = random.Random(713)  # noqa: S311 - the same story every time
    sizes = [TURNS // CONVERSATIONS] * CONVERSATIONS
    for number in range(TURNS % CONVERSATIONS):
        sizes[number] += 1
    for number, size in enumerate(sizes):
        said = [dice.choice(_OPENINGS), *(dice.choice(_NEXT) for _ in range(size - 1))]
        if number in REQUESTS:
            said[-1] = REQUESTS[number]
        yield said
