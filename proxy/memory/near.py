"""What memory is built from, and what it is once built: values that the gateway hands on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from structlog.typing import FilteringBoundLogger

from proxy.judge.fused import TurnJudge
from proxy.ledger.usage import Row
from proxy.memory.service import MemoryService, Spawn
from proxy.memory.tally import RunTally
from proxy.state.memory import Store
from proxy.upstream.transport import Transport

if TYPE_CHECKING:  # SQLAlchemy: 0.3 s and 25 MB, only where memory is on
    from proxy.memory.bank import Bank


@dataclass(frozen=True, slots=True)
class Near:
    """The collaborators from the rest of the gateway."""

    data: Path
    ways: Mapping[str, Transport]
    judge: TurnJudge | None
    store: Store
    spawn: Spawn
    record: Callable[[Row], None]
    log: FilteringBoundLogger
    environ: Mapping[str, str]
    runs: RunTally
    bank: "Bank | None" = None


@dataclass(frozen=True, slots=True)
class Remembered:
    """Memory as it runs: what turns ask, and what people ask about themselves."""

    service: MemoryService
    bank: "Bank"
