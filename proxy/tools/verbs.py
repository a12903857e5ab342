"""The terms of a request or a tool's name go in; the kind of change they ask for comes out."""

from collections.abc import Iterable

from proxy.tools.text import stem

_KINDS = (
    "create add new provision insert make register build",
    "delete remove drop erase clear destroy",
    "update modify change edit set patch scale configure rename resize enable disable adjust",
    "get list show describe read fetch retrieve view display find what which check query search",
)
KINDS = {stem(word): kind for kind, line in enumerate(_KINDS) for word in line.split()}


def find_verb(terms: Iterable[str]) -> int | None:
    """The kind of the first verb of creating, deleting, changing or reading; None without one."""
    return next((KINDS[term] for term in terms if term in KINDS), None)
