"""Ended runs come in; what is still to be told of them, or asked about them, goes out."""

from collections import OrderedDict
from collections.abc import Sequence

from proxy.memory.agent import Run
from proxy.memory.principal import Principal
from proxy.memory.session import Session
from proxy.wire import JSONObject

MOST_PEOPLE = 2_048
MOST_OWED = 16
MOST_TURNS = 4_096


class Recent:
    """Of this process, and bounded; the event log in the store has everything."""

    def __init__(self) -> None:
        self._owed: OrderedDict[Principal, list[JSONObject]] = OrderedDict()
        self._turns: OrderedDict[tuple[Principal, str], JSONObject] = OrderedDict()

    def owe(self, whose: Principal, artifacts: Sequence[JSONObject]) -> None:
        """Tell this with the user's next reply."""
        owed = [*self._owed.pop(whose, []), *artifacts]
        self._owed[whose] = owed[-MOST_OWED:]
        if len(self._owed) > MOST_PEOPLE:
            self._owed.popitem(last=False)

    def collect(self, whose: Principal) -> list[JSONObject]:
        """What is owed, once."""
        return self._owed.pop(whose, [])

    def note(self, session: Session, run: Run) -> None:
        """Keep how a turn's judgment ended."""
        if session.whose is None:
            return
        self._turns[session.whose, session.request_id] = {
            **session.describe(),
            "calls": run.calls,
            "outcomes": [[o.kind, o.key, o.reason] for o in run.outcomes],
        }
        if len(self._turns) > MOST_TURNS:
            self._turns.popitem(last=False)

    def explain(self, whose: Principal, request_id: str) -> JSONObject | None:
        """What is known of a turn."""
        return self._turns.get((whose, request_id))
