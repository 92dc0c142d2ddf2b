"""Changes the sizes of inputs where a node found shapes that do not fit each other."""

from collections.abc import Iterator, Sequence
from itertools import combinations, zip_longest
from math import gcd, prod

from ir_scatter.analysis.interpreter import Step, UnknownOp
from ir_scatter.evaluate.model import by_role, site_of
from ir_scatter.inputs.asked import Asked
from ir_scatter.inputs.cells import Stuck, Traced
from ir_scatter.inputs.sizes import Sizes
from ir_scatter.inputs.targets import axis_of
from ir_scatter.inputs.terms import Use
from ir_scatter.ops.constraints import Constraint as Need
from ir_scatter.ops.constraints import Meaning
from ir_scatter.ops.general import GeneralOp, constraints_of
from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.ops.lookup import Lookup
from ir_scatter.ops.spec import IndicesLimit, Layout, OpSpec, Role

_SHAPE_INPUTS = frozenset({"broadcast", "expand"})
_ONE_WAY = "broadcast"
_JOINING = "concat"
_LARGEST = 1 << 12
"""No dimension is made larger for the sake of a position."""


def mend(sizes: Sizes, stuck: Stuck) -> bool:
    """Make sizes equal that a node wants equal; tell whether some size has changed."""
    step, arrays = stuck.step, stuck.arrays
    pairs = list(stuck.pairs)
    limits: _Pairs = []
    if not arrays:
        return False
    if isinstance(step.work, Lookup):
        pairs, limits = _scatter_demands(step, arrays)
    elif not isinstance(step.work, UnknownOp):
        pairs += _plain_demands(step, arrays)
    changes = [sizes.make_equal(left, right) for left, right in pairs if left != right]
    changes += [sizes.change(size, limit) for size, limit in limits if size > limit]
    changes.append(grow(sizes, [*stuck.least, *_reached(step, arrays)]))
    if not any(changes):
        changes.append(any(sizes.change(size, wanted) for size, wanted in _counts(step, arrays)))
    if not any(changes):
        changes += [sizes.make_equal(size, wanted) for size, wanted in _aligned(step, arrays)]
    return any(changes)


def grow(sizes: Sizes, least: Sequence[tuple[int, int]]) -> bool:
    """Make sizes larger; tell whether some size has changed."""
    largest: dict[int, int] = {}
    for size, wanted in least:
        if size < wanted <= _LARGEST:
            largest[size] = max(wanted, largest.get(size, 0))
    changes = [sizes.change(size, wanted) for size, wanted in largest.items()]
    return any(changes)


def make_room(sizes: Sizes, use: Use) -> bool:
    """Make indices fewer where they are more than there are positions; tell whether that worked."""
    if not use.is_crowded:
        return False
    is_one_lane = len(use.lanes) == use.lane_size
    for size in use.shape if is_one_lane else (use.lane_size,):
        others = max(use.lane_size // max(size, 1), 1)
        wanted = max(use.positions // others, 1)
        if wanted < size and sizes.change(size, wanted):
            return True
    return False


_Pairs = list[tuple[int, int]]


def _scatter_demands(step: Step, arrays: Sequence[Array | None]) -> tuple[_Pairs, _Pairs]:
    """Return sizes that must be equal, and sizes with what they must not exceed."""
    assert isinstance(step.work, Lookup)
    site, operands = site_of(step), by_role(step.work, arrays)
    if not {Role.DATA, Role.UPDATES} <= operands.keys():
        return [], []
    data, updates = operands[Role.DATA].shape, operands[Role.UPDATES].shape
    indices = operands[Role.INDICES].shape if Role.INDICES in operands else ()
    axis = axis_of(site, operands) or 0
    if not -len(data) <= axis < len(data):
        return [], []
    return _demands(site.spec, data, indices, updates, axis % len(data))


def _demands(
    spec: OpSpec, data: tuple[int, ...], indices: tuple[int, ...], updates: tuple[int, ...], axis: int
) -> tuple[_Pairs, _Pairs]:
    if spec.layout is Layout.SLICES:
        return _paired((*data[:axis], *indices, *data[axis + 1 :]), updates), []
    if spec.layout is Layout.ELEMENTS:
        free = {IndicesLimit.OFF_AXIS: {axis}, IndicesLimit.EVERYWHERE: set()}.get(spec.indices_limit)
        kept = [] if free is None else [n for n in range(len(data)) if n not in free]
        limits = [(indices[n], data[n]) for n in kept if n < len(indices)]
        return _paired(indices, updates), limits
    if spec.layout is Layout.TUPLES:
        depth = indices[-1] if indices else 0
        if depth > len(data):
            return [], [(depth, len(data))]
        return _paired((*indices[:-1], *data[depth:]), updates), []
    pairs = _paired(data[:axis] + data[axis + 1 :], updates[:axis] + updates[axis + 1 :])
    pairs += _paired(indices, data[:1]) if indices else []
    return pairs, [(updates[axis], data[axis])] if axis < len(updates) else []


def _plain_demands(step: Step, arrays: Sequence[Array | None]) -> Iterator[tuple[int, int]]:
    """Yield sizes that stand beside each other and differ, neither of them 1."""
    kind = step.node.type.lower()
    is_elementwise = isinstance(step.work, GeneralOp) and step.work.is_elementwise
    if kind != _JOINING and kind not in _SHAPE_INPUTS and not is_elementwise:
        return
    shapes = _meeting_shapes(kind, arrays)
    free = None
    if kind == _JOINING and shapes:
        free = len(shapes[0]) - 1 - int(step.node.attributes.get("axis", 0)) % max(len(shapes[0]), 1)
    for left, right in combinations(shapes, 2):
        for number, (one, other) in enumerate(zip_longest(reversed(left), reversed(right), fillvalue=1)):
            is_one_way = kind == _ONE_WAY and one != 1
            if number != free and one != other and (is_one_way or 1 not in {one, other}):
                yield one, other


def _meeting_shapes(kind: str, arrays: Sequence[Array | None]) -> list[tuple[int, ...]]:
    """Return shapes whose dimensions meet, the last with the last."""
    shapes = [array.shape for array in arrays if array is not None]
    target, mapping = (*arrays, None, None, None)[1:3]
    if kind not in _SHAPE_INPUTS or target is None:
        return shapes
    wanted = tuple(target.reshape(-1).tolist()) if target.dtype.kind in "iu" else ()
    if mapping is None or mapping.dtype.kind not in "iu":
        return [*shapes[:1], wanted]
    places = mapping.reshape(-1).tolist()
    return [*shapes[:1], tuple(wanted[place] for place in places if -len(wanted) <= place < len(wanted))]


def _reached(step: Step, arrays: Sequence[Array | None]) -> Iterator[tuple[int, int]]:
    """Yield sizes with how large they must be for the positions that a scatter node names."""
    if not isinstance(step.work, Lookup):
        return
    site, operands = site_of(step), by_role(step.work, arrays)
    indices, data = operands.get(Role.INDICES), operands.get(Role.DATA)
    axis = axis_of(site, operands)
    if site.spec.layout is Layout.TUPLES or indices is None or data is None or axis is None:
        return
    if -data.ndim <= axis < data.ndim:
        yield from _grown(indices, data.shape[axis])


def named_positions(asked: Asked, needs: Sequence[Need]) -> Iterator[tuple[int, int]]:
    """Yield sizes that are too small for the positions that the model itself names, with how large."""
    for need in needs:
        cell = asked.cells[need.port] if need.port < len(asked.cells) else None
        if need.meaning is not Meaning.POSITION or not isinstance(cell, Traced) or cell.is_input:
            continue
        if not cell.is_opaque:
            size = asked.size(need.of, asked.axis(need.axis))
            yield from ((size, least) for size, least in _grown(cell.array, size) if least > size)


def _grown(indices: Array, size: int | None) -> Iterator[tuple[int, int]]:
    if size is not None and indices.size and indices.dtype.kind in "iu":
        yield size, max(int(indices.max()) + 1, -int(indices.min()))


def _counts(step: Step, arrays: Sequence[Array | None]) -> Iterator[tuple[int, int]]:
    """Yield dimensions of which another size would give as many elements as a new shape has."""
    data, target = _reshaped(step, arrays)
    if not data or not target:
        return
    old = [size for number, size in enumerate(data) if number >= len(target) or target[number] != 0]
    wanted = prod(number for number in target if number > 0)
    for number, size in enumerate(old):
        others = prod(old[:number] + old[number + 1 :])
        if others and (min(target) < 0 or wanted % others == 0):
            yield size, wanted // gcd(wanted, others)


def _aligned(step: Step, arrays: Sequence[Array | None]) -> Iterator[tuple[int, int]]:
    """Yield the sizes that make a shape the new one, but for dimensions of 1 in front."""
    data, target = _reshaped(step, arrays)
    if min(target, default=0) > 0:
        pairs = zip_longest(reversed(data), reversed(target), fillvalue=1)
        yield from ((size, wanted) for size, wanted in pairs if size != wanted)


def _reshaped(step: Step, arrays: Sequence[Array | None]) -> tuple[tuple[int, ...], list[int]]:
    """Return the old and the new shape of a node that reshapes; nothing for another."""
    meanings = {need.meaning for need in constraints_of(step.node.domain, step.node.type)}
    data, target = (*arrays, None, None)[:2]
    if Meaning.RESHAPED not in meanings or data is None or target is None or target.dtype.kind not in "iu":
        return (), []
    return data.shape, [int(number) for number in target.reshape(-1)]


def _paired(left: Sequence[int], right: Sequence[int]) -> _Pairs:
    return list(zip(left, right, strict=True)) if len(left) == len(right) else []
