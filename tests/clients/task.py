"""What every Python client is asked to do, and how it tells what it saw."""

import json
import os
import sys
from pathlib import Path
from typing import Any

URL = os.environ.get("CLIENT_URL", "")
PROMPT = os.environ.get("CLIENT_PROMPT", "")
MODEL, KEY = "standin", "client-key"


def load_tools() -> list[dict[str, Any]]:
    """The catalogue that is sent with every request."""
    tools: list[dict[str, Any]] = json.loads(Path(os.environ["CLIENT_TOOLS"]).read_bytes())
    return tools


class Witness:
    """One conversation: the calls that the client ran, and everything that it was shown."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.called: list[str] = []
        self.seen: list[str] = []

    def run_tool(self, name: str, arguments: Any) -> str:
        """Run a tool of the application."""
        if isinstance(arguments, str):
            arguments = json.loads(arguments)
        assert isinstance(arguments, dict)
        self.called.append(name)
        return json.dumps({"tool": name, "items": 3})

    def see(self, event: object) -> None:
        """Keep an event or a message as text."""
        self.seen.append(str(event))

    def report(self, answer: object, tokens: object) -> None:
        """Tell the suite; `tokens` is the total usage that the client knows of."""
        report = {
            "mode": self.mode,
            "called": self.called,
            "answer": answer,
            "tokens": tokens,
            "leaked": any("tool_search" in text for text in self.seen),
            "events": len(self.seen),
        }
        sys.stdout.write(json.dumps(report) + "\n")
