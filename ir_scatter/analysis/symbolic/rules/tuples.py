"""Proves that index tuples which are joined from columns are distinct."""

import itertools
from collections.abc import Generator, Sequence
from typing import Any

from ir_scatter.analysis.symbolic.case import Dims, NodeCase, Query, SymbolSource
from ir_scatter.analysis.symbolic.linear import ONE, Knowledge, Linear
from ir_scatter.analysis.symbolic.numbers import Condition, TensorNumbers
from ir_scatter.analysis.symbolic.rules.shared import MOST_NESTED
from ir_scatter.core.model import Value


def are_disjoint(knowledge: Knowledge, parts: Sequence[TensorNumbers]) -> bool:
    """Return whether all elements of each part are less than those of the next part."""
    for before, after in itertools.pairwise(parts):
        for first in before.cases:
            for second in after.cases:
                gaps = [low.minus(high).plus(-1) for low in second.lows for high in first.highs]
                if first.requires or second.requires or first.may_wrap or second.may_wrap:
                    return False
                if not any(knowledge.proves(gap) for gap in gaps):
                    return False
    return True


def distinct_tuples(
    case: NodeCase, values: Sequence[Value], parts: Sequence[TensorNumbers], axis: int, dims: Sequence[Linear]
) -> Generator[Query, Any, frozenset[Condition] | None]:
    """Return the conditions under which vectors joined along an axis are distinct; None if unknown.

    Each column is distinct along some axes. An axis is covered if a column is distinct along it, and depends
    only on this axis and on covered axes. If all axes are covered, two equal vectors agree on their position
    on each axis, one after the other, so they are the same vector:

        rows [B, 1] and columns [B, K] that are distinct along axis 1: rows cover axis 0, then columns axis 1

    Columns that were flattened before are first tried flat, then in their shape before that.
    """
    if len(values) != len(parts):
        return None
    columns = [(part, (*dims[:axis], ONE, *dims[axis + 1 :])) for part in parts]
    for attempt in range(2):
        if attempt:
            peeled = []
            for value in values:
                peeled.append((yield from _before_flattening(case.walker, value)))
            if any(item is None for item in peeled):
                return None
            columns = [item for item in peeled if item is not None]
            if len({shape for _, shape in columns}) != 1:
                return None
        shape = columns[0][1]
        conditions = covered_by([part for part, _ in columns], shape, axis if not attempt else None)
        if conditions is not None:
            return conditions
    return None


def covered_by(
    parts: Sequence[TensorNumbers], shape: Sequence[Linear], axis: int | None
) -> frozenset[Condition] | None:
    """Return the conditions under which columns cover all axes, see `distinct_tuples`; else None."""
    open_axes = {number for number, size in enumerate(shape) if size != ONE and number != axis}
    conditions: frozenset[Condition] = frozenset()
    for part in parts:
        if part.is_unique:
            return part.conditions
    whole = _rejoined(parts)
    if whole is not None:
        return whole
    covered: set[int] = set()
    changed = True
    while changed and open_axes - covered:
        changed = False
        for part in parts:
            depends = None if part.varying is None else {*part.varying} & open_axes
            for number in sorted(open_axes - covered):
                if depends is not None and number in part.distinct and depends <= covered | {number}:
                    covered.add(number)
                    conditions |= part.conditions
                    changed = True
    return conditions if open_axes <= covered else None


def _rejoined(parts: Sequence[TensorNumbers]) -> frozenset[Condition] | None:
    """Return the conditions under which quotients and remainders determine the elements of a unique tensor.

    None if they do not.

        x / 6, (x / 2) % 3, x % 2        the first two determine x / 2; with x % 2 they determine x
    """
    splits = [part.split for part in parts if part.split is not None]
    for whole in dict.fromkeys(split.whole for split in splits):
        divisor = next((s.divisor for s in splits if s.whole is whole and s.modulus is None), None)
        changed = True
        while divisor is not None and divisor != 1 and changed:
            changed = False
            for split in splits:
                is_remainder = split.whole is whole and split.modulus is not None
                if is_remainder and split.divisor * (split.modulus or 0) == divisor > split.divisor:
                    divisor, changed = split.divisor, True
        if divisor == 1:
            return frozenset().union(*[part.conditions for part in parts])
    return None


def _before_flattening(
    walker: SymbolSource, value: Value
) -> Generator[Query, Any, "tuple[TensorNumbers, tuple[Linear, ...]] | None"]:
    """Return the facts and the shape of a value before it was reshaped to a column; None if unknown."""
    current = value
    for _ in range(MOST_NESTED):
        node = current.producer
        if (
            node is None
            or current.is_input
            or node.type not in {"Reshape", "Unsqueeze", "Squeeze", "Flatten"}
        ):
            break
        source = node.inputs[0].value
        if source is None:
            break
        current = source
        shape: Dims = yield Query(current, True)
        if shape is not None and sum(size != ONE for size in shape) > 1:
            break
    numbers: TensorNumbers = yield Query(current, False)
    shape = yield Query(current, True)
    return None if shape is None else (numbers, shape)
