"""Decisions by letters: one request per question, answered by the probabilities of one token.

The options stand behind letters, the model is allowed one token, and the log probabilities that
the server reports for it are the distribution.
"""

import math
import string

from proxy.judge.emulate import Asked, first_choice, messages, refuses, weigh
from proxy.judge.questions import Answer, Refused, State, asked, flat
from proxy.judge.validate import BadAnswer, Rules
from proxy.wire import JSON, JSONObject

MOST_LETTERS = 20
"""OpenAI reports at most twenty alternatives per token."""
LEAST_MASS = 0.5
"""Less on the letters means that the model wanted to say something else."""
TOKEN = Rules(calibration="token", half_unit=1e-6)
_DRESSING = " \n\t▁Ġ.):*(\"'"
"""What tokenizers and models put around a letter."""
_RULE = "Answer with the letter of the one option that fits, and nothing else."


class NoLogprobs(BadAnswer):
    """The server took the request but reports no log probabilities."""


def letters_request(state: State, one: Asked) -> JSONObject:
    """The request for one question; the state stands first, so that questions share a prefix."""
    lettered = zip(string.ascii_uppercase, one.options, strict=False)
    rows = [f"{letter}. {option.text}" for letter, option in lettered]
    text = "\n".join([flat(asked(one.question)), *rows, _RULE])
    return {
        "messages": messages(state, text),
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": MOST_LETTERS,
    }


def read_letters(body: JSON, one: Asked) -> Answer:
    """The answer that the token probabilities give; raises BadAnswer, or NoLogprobs."""
    if refuses(body):
        return Refused()
    masses = [0.0] * len(one.options)
    for token, probability in _alternatives(body):
        position = string.ascii_uppercase.find(token)
        if 0 <= position < len(masses):
            masses[position] += probability
    total = math.fsum(masses)
    if total < LEAST_MASS:
        raise BadAnswer("the model wanted to say something else")
    return weigh(one, [mass / total for mass in masses], TOKEN)


def _alternatives(body: JSON) -> list[tuple[str, float]]:
    """Tokens that are one letter once dressed down, with their probabilities."""
    logprobs = first_choice(body).get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    first = content[0] if isinstance(content, list) and content else None
    top = first.get("top_logprobs") if isinstance(first, dict) else None
    if not isinstance(top, list) or not top:
        raise NoLogprobs("the reply has no log probabilities")
    found = [_alternative(entry) for entry in top if isinstance(entry, dict)]
    return [(letter, probability) for letter, probability in found if len(letter) == 1]


def _alternative(entry: JSONObject) -> tuple[str, float]:
    token, logprob = entry.get("token"), entry.get("logprob")
    if not isinstance(token, str) or not isinstance(logprob, int | float) or not logprob <= 1e-6:
        raise BadAnswer("a log probability is broken")
    return token.strip(_DRESSING).upper(), math.exp(min(0.0, logprob))
