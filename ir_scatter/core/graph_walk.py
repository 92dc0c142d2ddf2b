"""A walk from a value to what it comes from, without recursion."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from ir_scatter.core.model import Value

_Made = TypeVar("_Made")


def follow(
    target: Value,
    results: dict[Value, _Made | None],
    sources: Callable[[Value], Iterable[Value]],
    make: Callable[[Value], _Made | None],
    most: int,
) -> bool:
    """Make something of a value when it is `known` of all its sources, None where it is None of one.

    Chains may be long, so there is no recursion. What depends on itself has nothing made of it, nor has what
    depends on more than `most` values; then False is returned.
    """
    path = {target: iter(sources(target))}
    while path:
        value = next(reversed(path))
        source = next(path[value], None)
        if source is not None and source not in results and source not in path and most > 0:
            most -= 1
            path[source] = iter(sources(source))
            continue
        if source is None:
            del path[value]
            result = results[value] = make(value)
        else:
            result = results.get(source)
        if result is None:
            results.update(dict.fromkeys(path))
            return source is None or source in results
    return True
