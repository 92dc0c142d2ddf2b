"""A depth-first walk from a value upstream, without recursion."""

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
    """Compute results for a value and all values upstream of it, sources first.

    Args:
        target: the value to start from.
        results: the results by value, which are added here; None marks a value without one.
        sources: returns the values that a value is computed from.
        make: computes the result of a value once all its sources have one.
        most: the maximum number of values to visit.

    Returns:
        False if a cycle or the maximum ended the walk; the values on its path then have no result.

        A value also has no result if one of its sources has none.
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
