"""The official clients, each in its own words; prints one JSON line per check."""

import json
import os
import sys
import traceback
from collections.abc import Callable
from enum import Enum

from openai import BadRequestError, OpenAI
from pydantic import BaseModel, Field
from pydantic_ai import Agent
from pydantic_ai.models.system_one import SystemOneModel
from pydantic_ai.providers.system_one import SystemOneProvider
from typesafe_sdk import Choice, Noul, Score, TypeSafeClient

URL = os.environ["CLIENT_URL"]
KEY = os.environ["CLIENT_KEY"]
TICKET = "I was charged twice for my invoice and I want a refund. I am frustrated."
TEAMS = {"billing": "refund and invoice", "technical": "bugs", "sales": None}


def typesafe() -> None:
    """Noul, choice and score in one request, parsed into the SDK's own types."""
    with TypeSafeClient(api_key=KEY, base_url=URL) as client:
        found = client.system_one(
            state=TICKET,
            questions={
                "refund": Noul(instructions="Is a refund wanted?"),
                "team": Choice(instructions="Which team?", criteria=TEAMS),
                "anger": Score(instructions="How angry?", criteria=["calm", "frustrated"]),
            },
            model="jev-latest",
        )
    assert 0 <= found.nouls["refund"].noul <= 1
    assert found.choices["team"].choice == "billing"
    assert 0 <= found.scores["anger"].score <= 1


class Team(Enum):
    """Who handles it."""

    BILLING = "billing"
    TECHNICAL = "technical"


class Handling(BaseModel):
    """What an agent decides."""

    refund: bool = Field(description="Does the customer want a refund?")
    team: Team = Field(description="Which team handles the ticket?")


def pydantic_ai() -> None:
    """An agent whose job is to decide."""
    provider = SystemOneProvider(base_url=URL, api_key=KEY)
    agent = Agent(SystemOneModel("jev-latest", provider=provider), output_type=Handling)
    result = agent.run_sync(TICKET)
    assert result.output.team in Team
    assert result.usage.input_tokens > 0


def pydantic_ai_by_name() -> None:
    """The same by its `system-one:` name and environment."""
    os.environ |= {"SYSTEM_ONE_BASE_URL": URL, "SYSTEM_ONE_API_KEY": KEY}
    result = Agent("system-one:jev-latest", output_type=Handling).run_sync(TICKET)
    assert isinstance(result.output.refund, bool)


def openai_decisions() -> None:
    """All three kinds over a conversation with a tool call."""
    with OpenAI(api_key=KEY, base_url=f"{URL}/v1") as client:
        found = client.decisions.create(
            model="gpt-6-luna",
            input=[
                {"role": "user", "content": TICKET},
                {"type": "function_call", "call_id": "c1", "name": "search", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": "[]"},
            ],
            questions=[
                {"type": "predicate", "name": "refund", "instructions": "Is a refund wanted?"},
                {
                    "type": "choice",
                    "name": "team",
                    "instructions": "Which team?",
                    "choices": [
                        {"value": "billing", "description": "refund and invoice"},
                        {"value": True},
                    ],
                },
                {
                    "type": "score",
                    "name": "anger",
                    "instructions": "How angry?",
                    "levels": [{"label": "calm"}, {"label": "frustrated"}],
                },
            ],
        )
    assert [answer.type for answer in found.answers] == ["predicate", "choice", "score"]
    assert found.answers[1].choice == "billing"
    assert found.usage.total_tokens == found.usage.input_tokens + found.usage.output_tokens


def openai_error() -> None:
    """A request that cannot be judged is the SDK's BadRequestError."""
    with OpenAI(api_key=KEY, base_url=f"{URL}/v1") as client:
        param = None
        try:
            client.decisions.create(model="gpt-6-luna", input="x", questions=[])
        except BadRequestError as error:
            param = error.param
    assert param == "questions"


def models() -> None:
    """One list for both kinds of client."""
    with TypeSafeClient(api_key=KEY, base_url=URL) as client:
        names = [model.name for model in client.models.list().models]
    with OpenAI(api_key=KEY, base_url=f"{URL}/v1") as client:
        ids = [model.id for model in client.models.list()]
    assert "jev-latest" in names
    assert ids == ["small"]


CHECKS: list[Callable[[], None]] = [
    typesafe,
    pydantic_ai,
    pydantic_ai_by_name,
    openai_decisions,
    openai_error,
    models,
]


def main() -> None:
    """Run all of them."""
    for check in CHECKS:
        try:
            check()
            fault = None
        except Exception as error:  # noqa: BLE001 - whatever a client raises is the finding
            traceback.print_exc()
            fault = f"{type(error).__name__}: {str(error)[:300]}"
        sys.stdout.write(json.dumps({"check": check.__name__, "fault": fault}) + "\n")


if __name__ == "__main__":
    main()
