"""What a runtime's process says of tapped nodes, put together."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.runners.outcome import Execution, Tap, Tapped

_FEED = "feed"
"""How a value is found: ["feed", name], or ["each", number, loops] of an array with one leading
dimension for each of the outermost `loops` loops around the node."""


def decode(
    taps: Sequence[Tap],
    answers: Sequence[Mapping[str, Any]],
    arrays: Sequence[Array],
    feeds: Mapping[str, Array],
) -> tuple[Tapped, ...]:
    """Return what came out of each tapped node.

    Args:
        taps: what was asked for.
        answers: of the runtime's process, none or one for each.
        arrays: that came with them.
        feeds: that were sent.
    """
    pairs = zip(taps, answers, strict=True) if answers else ()
    return tuple(_decode(tap, answer, arrays, feeds) for tap, answer in pairs)


def _decode(
    tap: Tap, answer: Mapping[str, Any], arrays: Sequence[Array], feeds: Mapping[str, Array]
) -> Tapped:
    if "problem" in answer:
        return Tapped(tap, problem=answer["problem"])
    executions: list[Execution] = []
    for run in answer["runs"]:
        for place in _places(run, arrays):
            inputs = (_value(source, place, arrays, feeds) for source in run["inputs"])
            output = _value(run["output"], place, arrays, feeds)
            assert output is not None
            executions.append(Execution(place, tuple(inputs), output, run.get("caller", "")))
    return Tapped(tap, tuple(executions))


def _places(run: Mapping[str, Any], arrays: Sequence[Array]) -> Iterator[tuple[int, ...]]:
    """Yield the numbers of the iterations in which the branches around the node were taken."""
    _, number, loops = run["output"]
    lengths = arrays[number].shape[:loops]
    for place in product(*map(range, lengths)):
        taken = (arrays[marker][place[:depth]].all() for marker, depth in run["markers"])
        if all(taken):
            yield place


def _value(
    source: Sequence[Any] | None, place: tuple[int, ...], arrays: Sequence[Array], feeds: Mapping[str, Array]
) -> Array | None:
    if source is None:
        return None
    if source[0] == _FEED:
        return feeds[source[1]]
    _, number, loops = source
    found: Array = arrays[number][(*place[:loops], ...)]
    return found
