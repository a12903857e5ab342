"""The stand-in model: a deterministic OpenAI-compatible upstream inside this process."""

from proxy.upstream.standin.script import Received, Script, Step
from proxy.upstream.standin.transport import StandinTransport

__all__ = ["Received", "Script", "StandinTransport", "Step"]
