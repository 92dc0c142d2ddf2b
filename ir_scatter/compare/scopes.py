"""Paths to nodes: where values flow a node of a function has one for each call, to a reader only one."""

from collections.abc import Collection


def printed(scope: str, known: Collection[str]) -> str | None:
    """Return the path by which `validate` prints a node, None if it is no known one.

    Args:
        scope: the path through all calls: "call:own::Store/written".
        known: paths as they are printed: "own::Store/written".
    """
    if scope in known:
        return scope
    at = scope.find(":")
    while at >= 0:
        if scope[at + 1 :] in known:
            return scope[at + 1 :]
        at = scope.find(":", at + 1)
    return None
