"""Whole shapes for one node: those it has, dynamic dimensions drawn small so that all fit."""

from collections.abc import Collection, Sequence
from math import prod

import numpy as np

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.shapes import (
    UNKNOWN_DIM,
    Bounds,
    Dim,
    Shape,
    agree,
    agree_dims,
    at_most,
    highest,
    lowest,
    narrow,
    narrow_dim,
)
from ir_scatter.inputs.shapes import CaseShapes
from ir_scatter.ops.spec import IndicesLimit, Layout

_LARGEST = 4
_RANKS = (1, 4)


class Misfit(Exception):
    """The shapes of a node do not fit each other; the rules say how."""


def draw_shapes_like(
    random: np.random.Generator,
    site: ScatterNode,
    *,
    is_unique: bool,
    is_full: bool = False,
    is_tight: bool = False,
) -> CaseShapes:
    """Return shapes that a node can have when the model runs.

    Args:
        random: where randomness comes from.
        site: the node.
        is_unique: whether there must be room for targets that differ.
        is_full: whether indices reach every position of the other axes.
        is_tight: whether every dimension is to be the least possible one: inputs that are one value
            seldom get one shape by chance.

    Raises:
        Misfit: there are none.
    """
    updates = site.updates.shape if site.updates else None
    draw = _Draw(random, site, is_unique, is_full, is_tight)
    return _LAYOUTS[site.spec.layout](draw, site.data_shape, site.indices_shape, updates)


class _Draw:
    """Draws dimensions for one node."""

    def __init__(
        self, random: np.random.Generator, site: ScatterNode, is_unique: bool, is_full: bool, is_tight: bool
    ) -> None:
        self.random, self.site = random, site
        self.is_unique, self.is_full, self.is_tight = is_unique, is_full, is_tight

    def dim(self, dim: Dim, low: int = 1, high: int = _LARGEST) -> int:
        """Return a number for a dimension, within its own bounds and, if they agree, these."""
        if isinstance(dim, int):
            return dim
        least, most = max(dim.low, low), high if dim.high is None else min(dim.high, high)
        least = least if dim.high is None else min(least, dim.high)
        if self.is_tight:
            return least
        return int(self.random.integers(least, max(least, most) + 1))

    def whole(self, shape: Shape, rank: int) -> tuple[int, ...]:
        """Return numbers for all dimensions."""
        return tuple(self.dim(dim) for dim in _of_rank(shape, rank))

    def rank(self, *ranks: int | None) -> int:
        """Return the first rank that is known, otherwise a small one."""
        known = next((rank for rank in ranks if rank is not None), None)
        if known is not None:
            return known
        return max(int(self.random.integers(*_RANKS)), self.least_rank)

    @property
    def least_rank(self) -> int:
        """Return the least rank of data that has the axis."""
        written, source = self.site.written_axis or 0, self.site.spec.axis
        is_not_first = source is not None and 0 in source.excluded
        return max(written + 1 if written >= 0 else -written + is_not_first, 1)

    def roomy(self, data: tuple[Dim, ...], axis: int | None) -> tuple[Dim, ...]:
        """Return the shape of data with room for indices that are constant.

        Args:
            data: the shape as it is known.
            axis: what they count on; None for the first dimensions, one for each coordinate.
        """
        array = self.site.index_array
        if array is None or not array.size:
            return data
        columns = array.reshape(-1, array.shape[-1] if axis is None else 1).astype(np.int64)
        needed = np.maximum(columns.max(axis=0) + 1, -columns.min(axis=0)).tolist()
        dims = list(data)
        for place, least in enumerate(needed, 0 if axis is None else axis):
            dim = dims[place]
            if isinstance(dim, Bounds):
                more = max(dim.low, least) + (0 if self.is_tight else int(self.random.integers(0, 3)))
                dims[place] = Bounds(more if dim.high is None else min(more, dim.high), dim.high)
            if highest(dim) is not None and (highest(dim) or 0) < least:
                raise Misfit
        return tuple(dims)

    def axis(self, rank: int, fitting: Collection[int] | None = None) -> int:
        """Return the axis of the node, or some axis where it is not known.

        Args:
            rank: that of data.
            fitting: axes that the shapes allow; None for all.
        """
        written = self.site.written_axis
        excluded = self.site.spec.axis.excluded if self.site.spec.axis else frozenset()
        if written is not None:
            if not -rank <= written < rank or written % rank in excluded:
                raise Misfit
            return written % rank
        possible = range(rank) if fitting is None else fitting
        choice = [axis for axis in possible if axis not in excluded]
        if not choice:
            raise Misfit
        return int(self.random.choice(choice))


def _slices(draw: _Draw, data: Shape, indices: Shape, updates: Shape) -> CaseShapes:
    index_rank = _length(indices)
    if index_rank is None and updates is not None and data is not None:
        index_rank = len(updates) - len(data) + 1
    if index_rank is None:
        index_rank = int(draw.random.integers(0, 3)) if updates is None else _index_rank(draw, len(updates))
    rank = draw.rank(_length(data), None if updates is None else len(updates) - index_rank + 1)
    if updates is not None and len(updates) != rank + index_rank - 1:
        raise Misfit
    data, indices = _of_rank(data, rank), _of_rank(indices, index_rank)
    fitting = [n for n in range(rank) if agree((*data[:n], *indices, *data[n + 1 :]), updates)]
    axis = draw.axis(rank, fitting)
    data = draw.roomy(data, axis)
    if updates is not None:
        around = (*updates[:axis], UNKNOWN_DIM, *updates[axis + index_rank :])
        data = _of_rank(_merge(data, around), rank)
        indices = _of_rank(_merge(indices, updates[axis : axis + index_rank]), index_rank)
    names = draw.whole(indices, index_rank)
    count = prod(names)
    whole = [draw.dim(dim) for dim in data]
    if isinstance(data[axis], Bounds):
        whole[axis] = draw.dim(data[axis], max(count, 1), max(count, 1) + 2)
    if not whole[axis]:
        names = _without_targets(indices, names)
    return CaseShapes(tuple(whole), names, (*whole[:axis], *names, *whole[axis + 1 :]), axis)


def _index_rank(draw: _Draw, count: int) -> int:
    """Return a rank of indices with which data has the axis and updates have their rank."""
    fitting = [rank for rank in range(count + 1) if count - rank + 1 >= draw.least_rank]
    if not fitting:
        raise Misfit
    return 1 if 1 in fitting else fitting[-1]


def _elements(draw: _Draw, data: Shape, indices: Shape, updates: Shape) -> CaseShapes:
    indices = _merge(indices, updates)
    rank = draw.rank(_length(data), _length(indices))
    data, indices = _of_rank(data, rank), _of_rank(indices, rank)
    pairs = [*enumerate(zip(indices, data, strict=True))]
    too_long = {place for place, (dim, size) in pairs if not at_most(dim, size)}
    axis = draw.axis(rank, [place for place in range(rank) if too_long <= {place}])
    data = draw.roomy(data, axis)
    limit = draw.site.spec.indices_limit
    sizes, names = [], []
    for place, (size, dim) in enumerate(zip(data, indices, strict=True)):
        if draw.is_full and place != axis:
            size = dim = _merge_dims(size, dim)
        is_limited = draw.is_unique or place != axis or limit is IndicesLimit.EVERYWHERE
        least = dim if isinstance(dim, int) else dim.low
        found = draw.dim(size, max(least, 1), max(least, _LARGEST)) if isinstance(size, Bounds) else size
        sizes.append(found)
        is_same = draw.is_full and place != axis
        if is_same and found == 0:
            raise Misfit
        most = found if is_limited else found + 2
        names.append(found if is_same else draw.dim(dim, min(found, 1), most))
    drawn = tuple(names) if sizes[axis] else _without_targets(indices, names)
    return CaseShapes(tuple(sizes), drawn, drawn, axis)


def _tuples(draw: _Draw, data: Shape, indices: Shape, updates: Shape) -> CaseShapes:
    depth = draw.site.depth
    if depth is None:
        depth = _depth(draw, data, indices, updates)
    leading = None if indices is None else len(indices) - 1
    if leading is None:
        leading = int(draw.random.integers(0, 3))
        if updates is not None and data is not None:
            leading = max(len(updates) - len(data) + depth, 0)
    known_rank = None if updates is None else len(updates) - leading + depth
    rank = max(draw.rank(_length(data), known_rank), depth)
    data = _of_rank(data, rank)
    head = _of_rank(None if indices is None else indices[:-1], leading)
    if updates is not None and len(updates) == leading + rank - depth:
        head = _of_rank(_merge(head, updates[:leading]), leading)
        data = (*data[:depth], *(_merge(data[depth:], updates[leading:]) or ()))
    names, whole = draw.whole(head, leading), draw.whole(draw.roomy(data, None), rank)
    if draw.is_unique and prod(names) > prod(whole[:depth]):
        names = tuple(dim if isinstance(dim, int) else max(dim.low, 1) for dim in head)
    if 0 in whole[:depth]:
        names = _without_targets(head, names)
    shape = (*names, *whole[depth:])
    is_one_element = updates is not None and not shape and len(updates) > 0
    if is_one_element and not draw.site.spec.scalar_updates:
        raise Misfit
    return CaseShapes(whole, (*names, depth), (1,) * len(updates or ()) if is_one_element else shape, None)


def _depth(draw: _Draw, data: Shape, indices: Shape, updates: Shape) -> int:
    """Return a number of coordinates that fits the ranks, as far as they are known."""
    limit = UNKNOWN_DIM if indices is None else indices[-1]
    upper = _length(data) or max(lowest(limit), 2)
    fitting = [depth for depth in range(1, upper + 1) if agree_dims(depth, limit)]
    if data is not None and indices is not None and updates is not None:
        leading, is_one = len(indices) - 1, draw.site.spec.scalar_updates
        fitting = [
            depth
            for depth in fitting
            if agree((*indices[:-1], *data[depth:]), updates)
            or (is_one and not leading and depth == upper and agree((1,) * len(updates), updates))
        ]
    if not fitting:
        raise Misfit
    return int(draw.random.choice(fitting))


def _sequence(draw: _Draw, data: Shape, indices: Shape, updates: Shape) -> CaseShapes:
    rank = max(draw.rank(_length(data), _length(updates)), 2)
    axis, first = draw.axis(rank), draw.site.index_array
    data, updates = _of_rank(data, rank), _of_rank(updates, rank)
    if indices is not None:
        data = (_merge_dims(data[0], _of_rank(indices, 1)[0]), *data[1:])
    before = 0 if first is None or not first.size else max(int(first.max()), 0)
    whole, new = [], []
    for place, (size, dim) in enumerate(zip(data, updates, strict=True)):
        if place == axis:
            least = before + (dim if isinstance(dim, int) else max(dim.low, 1))
            length = draw.dim(size, least, least + _LARGEST)
            whole.append(length)
            new.append(draw.dim(dim, min(length, 1), max(length - before, min(length, 1))))
        else:
            whole.append(draw.dim(_merge_dims(size, dim)))
            new.append(whole[-1])
    return CaseShapes(tuple(whole), (whole[0],) if draw.site.indices else None, tuple(new), axis)


_LAYOUTS = {
    Layout.SLICES: _slices,
    Layout.ELEMENTS: _elements,
    Layout.TUPLES: _tuples,
    Layout.SEQUENCE: _sequence,
}


def _length(shape: Shape) -> int | None:
    return None if shape is None else len(shape)


def _of_rank(shape: Shape, rank: int) -> tuple[Dim, ...]:
    if shape is None:
        return (UNKNOWN_DIM,) * rank
    if len(shape) != rank:
        raise Misfit
    return shape


def _without_targets(shape: tuple[Dim, ...], drawn: Sequence[int]) -> tuple[int, ...]:
    """Return the dimensions of indices where data has no position that they could name."""
    if 0 in drawn:
        return tuple(drawn)
    found = tuple(number if dim == number else lowest(dim) for dim, number in zip(shape, drawn, strict=True))
    if 0 not in found:
        raise Misfit
    return found


def _merge(left: Shape, right: Shape) -> Shape:
    if not agree(left, right):
        raise Misfit
    return narrow(left, right)


def _merge_dims(left: Dim, right: Dim) -> Dim:
    if not agree_dims(left, right):
        raise Misfit
    return narrow_dim(left, right)
