"""Kernels that compare elements with each other: extremes, order, uniqueness, search, one-hot."""

from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.shapes import show
from ir_scatter.ops.general_kernels.base import (
    BOOLEAN,
    NUMERIC,
    WHOLE,
    Kernel,
    KernelCase,
    UnsupportedCase,
    narrow,
    normalize_axis,
    require_kind,
    widen,
)
from ir_scatter.ops.general_kernels.boxes import descending, suppress


def arg_extreme(function: Any) -> Kernel:
    """Return the kernel of ArgMax or ArgMin; of equal elements the first or the last counts."""

    def kernel(case: KernelCase) -> Array:
        data = case.array(0)
        require_kind(NUMERIC, data)
        axis = normalize_axis(case.attributes.integer("axis", 0), data.ndim)
        wide = widen(data)
        if case.attributes.boolean("select_last_index", False):
            places = data.shape[axis] - 1 - function(np.flip(wide, axis), axis, keepdims=True)
        else:
            places = function(wide, axis, keepdims=True)
        output: Array = places.astype(np.int64)
        return output if case.attributes.boolean("keepdims", True) else output.squeeze(axis)

    return kernel


def sorting_order(data: Array, axis: int, *, descends: bool) -> Array:
    """Return the positions that sort data along an axis; equal elements keep their order."""
    if not descends:
        return np.argsort(data, axis, kind="stable")
    backwards = np.argsort(np.flip(data, axis), axis, kind="stable")
    return np.asarray(data.shape[axis] - 1 - np.flip(backwards, axis))


_FEW = 16
"""If at least this many times fewer elements are returned than exist, they are selected before sorting."""


def _top_places(data: Array, axis: int, count: int, *, is_largest: bool) -> Array:
    """Return the positions of the largest or smallest elements, sorted; equal elements keep their order."""
    size = data.shape[axis]
    if size < 256 or count * _FEW > size or not count or (data.dtype.kind == "f" and np.isnan(data).any()):
        return sorting_order(data, axis, descends=is_largest).take(range(count), axis)
    rows = np.moveaxis(data, axis, -1)
    rank = size - count if is_largest else count - 1
    limit = np.partition(rows, rank, -1)[..., rank : rank + 1]
    is_beyond = rows > limit if is_largest else rows < limit
    is_equal = rows == limit
    spare = count - is_beyond.sum(-1, keepdims=True)
    is_chosen = is_beyond | (is_equal & (np.cumsum(is_equal, -1) <= spare))
    chosen = np.nonzero(is_chosen)[-1].reshape(*rows.shape[:-1], count)
    order = sorting_order(np.take_along_axis(rows, chosen, -1), -1, descends=is_largest)
    return np.moveaxis(np.take_along_axis(chosen, order, -1), -1, axis)


def top(case: KernelCase) -> tuple[Array, Array]:
    """Return the k largest or smallest elements along an axis, and their positions.

    Among equal elements the first ones are returned.
    """
    data = case.array(0)
    require_kind(NUMERIC, data)
    axis = normalize_axis(case.attributes.integer("axis", -1 if case.is_onnx else None), data.ndim)
    count = case.attributes.integer("k") if "k" in case.attributes else case.integer(1)
    if not 0 <= count <= data.shape[axis]:
        raise UnsupportedCase(f"k is {count}, expected 0 to {data.shape[axis]}")
    if case.is_onnx:
        is_largest = case.attributes.boolean("largest", True)
    else:
        is_largest = case.attributes.text("mode", None, {"max", "min"}) == "max"
    wide = widen(data)
    places = _top_places(wide, axis, count, is_largest=is_largest)
    if not case.is_onnx and case.attributes.text("sort", None, {"value", "index", "none"}) == "index":
        places = np.sort(places, axis)
    values = np.take_along_axis(wide, places, axis)
    type = np.dtype(np.int64) if case.is_onnx else case.dtype("index_element_type", "i32")
    return narrow(values, data.dtype), places.astype(type)


def unique(case: KernelCase) -> tuple[Array, ...]:
    """Return unique elements or slices, and for them: first positions, inverse indices and counts."""
    data = case.array(0)
    require_kind(NUMERIC | BOOLEAN, data)
    wide, axis = widen(data), None
    if case.is_onnx:
        axis = case.attributes.integer("axis") if "axis" in case.attributes else None
    elif case.has(1):
        axis = case.integer(1)
    if axis is None:
        wide = wide.reshape(-1)
    else:
        axis = normalize_axis(axis, data.ndim)
    found = np.unique(
        wide, return_index=True, return_inverse=True, return_counts=True, axis=axis, equal_nan=False
    )
    values, first, inverse, counts = (np.asarray(part) for part in found)
    inverse = inverse.reshape(-1)
    if not case.attributes.boolean("sorted", True):
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        values = values.take(order, 0 if axis is None else axis)
        first, inverse, counts = first[order], rank[inverse], counts[order]
    place_type = count_type = np.dtype(np.int64)
    if not case.is_onnx:
        place_type, count_type = (
            case.dtype(name, "i64") for name in ("index_element_type", "count_element_type")
        )
    places = (first.astype(place_type), inverse.astype(place_type), counts.astype(count_type))
    return (narrow(values, data.dtype), *places)


def one_hot(case: KernelCase) -> Array:
    """Return one value at the positions in indices along a new axis, and another value elsewhere."""
    indices = case.array(0)
    require_kind(NUMERIC if case.is_onnx else WHOLE, indices)
    depth_array = case.array(1)
    if depth_array.size != 1:
        raise UnsupportedCase(f"depth has shape {show(depth_array.shape)}, expected one number")
    depth = int(widen(depth_array).reshape(-1)[0])
    if depth < (1 if case.is_onnx else 0):
        raise UnsupportedCase(f"depth is {depth}, expected a positive number")
    if case.is_onnx:
        values = case.array(2)
        if values.shape != (2,):
            raise UnsupportedCase(f"values has shape {show(values.shape)}, expected [2]")
        off, on = values
    else:
        on, off = (case.array(port).reshape(-1)[0] for port in (2, 3))
        values = case.array(2)
    axis = normalize_axis(case.attributes.integer("axis", -1 if case.is_onnx else None), indices.ndim + 1)
    case.reserve((*indices.shape[:axis], depth, *indices.shape[axis:]))
    whole = widen(indices).astype(np.int64)
    mode = case.attributes.text("negative_indices_mode", "ignore_negative", {"ignore_negative", "normalize"})
    if case.is_onnx or mode == "normalize":
        whole = np.where((whole < 0) & (whole >= -depth), whole + depth, whole)
    numbers = np.arange(depth).reshape([-1 if place == axis else 1 for place in range(indices.ndim + 1)])
    return np.asarray(np.where(np.expand_dims(whole, axis) == numbers, on, off)).astype(values.dtype)


def bucketize(case: KernelCase) -> Array:
    """Return the number of the bucket of each element, given ascending bounds."""
    data, bounds = case.arrays(2)
    require_kind(NUMERIC, data, bounds)
    side = "left" if case.attributes.boolean("with_right_bound", True) else "right"
    places = np.searchsorted(widen(bounds), widen(data), side)  # type: ignore[call-overload]
    return np.asarray(places).astype(case.dtype("output_type", "i64"))


def search_sorted(case: KernelCase) -> Array:
    """Return the insertion positions of numbers in sorted sequences, one for each row or one for all."""
    ordered, numbers = case.arrays(2)
    require_kind(NUMERIC, ordered, numbers)
    side: Any = "right" if case.attributes.boolean("right_mode", False) else "left"
    left, right = widen(ordered), widen(numbers)
    type = case.dtype("output_type", "i64")
    if ordered.ndim == 1:
        return np.asarray(np.searchsorted(left, right, side)).astype(type)
    if ordered.shape[:-1] != numbers.shape[:-1]:
        raise UnsupportedCase(f"the shapes are {show(ordered.shape)} and {show(numbers.shape)}")
    output = np.empty(numbers.shape, type)
    for row in np.ndindex(numbers.shape[:-1]):
        output[row] = np.searchsorted(left[row], right[row], side)
    return output


def compress(case: KernelCase) -> Array:
    """Keep the slices, or elements of the flat tensor, for which a condition is true."""
    data, condition = case.arrays(2)
    require_kind(BOOLEAN, condition)
    if "axis" in case.attributes:
        axis = normalize_axis(case.attributes.integer("axis"), data.ndim)
        return np.compress(condition, data, axis)
    return np.compress(condition, data.reshape(-1))


# Non-maximum suppression.


def non_max_suppression(case: KernelCase) -> Any:
    """Select boxes greedily by score, and drop boxes with too much overlap with a selected box.

    ONNX returns [n, 3] triples of batch, class and box. OpenVINO's versions 5 and 9 also return the scores
    and the number of triples, and may decay the scores (soft NMS).
    """
    boxes, scores = (widen(array).astype(np.float64) for array in case.arrays(2))
    if boxes.ndim != 3 or boxes.shape[2] != 4 or scores.ndim != 3:
        raise UnsupportedCase(f"boxes are {show(boxes.shape)} and scores {show(scores.shape)}")
    if not case.is_onnx and not case.is_since(5):
        raise UnsupportedCase("NonMaxSuppression before version 5 is not computed")
    most = case.integer(2) if case.has(2) else 0
    overlap, least = (_number(case, port) for port in (3, 4))
    sigma = 0.0 if case.is_onnx else _number(case, 5)
    if case.is_onnx:
        is_corner = not case.attributes.boolean("center_point_box", False)
    else:
        is_corner = case.attributes.text("box_encoding", "corner", {"corner", "center"}) == "corner"
    corners = _corners(boxes, is_corner=is_corner)
    has_least = case.has(4)
    triples: list[tuple[int, int, int]] = []
    chosen_scores: list[float] = []
    for batch, class_number in np.ndindex(scores.shape[:2]):
        candidates = scores[batch, class_number].copy()
        for box, score in _select(
            corners[batch], candidates, most, overlap, least, sigma, has_least or not case.is_onnx
        ):
            triples.append((batch, class_number, box))
            chosen_scores.append(score)
    selected = np.array(triples, np.int64).reshape(-1, 3)
    if case.is_onnx:
        return selected
    found = np.array(chosen_scores)
    if case.attributes.boolean("sort_result_descending", True):
        order = sorting_order(found, 0, descends=True)
        selected, found = selected[order], found[order]
    type = case.dtype("output_type", "i64")
    table = np.column_stack([selected[:, :2], found[:, None]]).astype(case.array(1).dtype)
    return selected.astype(type), table, np.array([len(found)], type)


def _number(case: KernelCase, port: int) -> float:
    return float(widen(case.array(port)).reshape(-1)[0]) if case.has(port) else 0.0


def _corners(boxes: Array, *, is_corner: bool) -> Array:
    """Return boxes as [y low, x low, y high, x high]."""
    if is_corner:
        first, second = boxes[..., :2], boxes[..., 2:]
        return np.concatenate([np.minimum(first, second), np.maximum(first, second)], -1)
    centre, size = boxes[..., 1::-1], boxes[..., :1:-1]
    return np.concatenate([centre - size / 2, centre + size / 2], -1)


def _select(
    boxes: Array, scores: Array, most: int, overlap: float, least: float, sigma: float, has_least: bool
) -> list[tuple[int, float]]:
    selected: list[tuple[int, float]] = []
    alive = scores > least if has_least else np.ones(scores.shape, np.bool_)
    if sigma <= 0:
        candidates = np.flatnonzero(alive)
        if np.isnan(scores[candidates]).any():
            raise UnsupportedCase("a score is NaN")
        ordered = candidates[descending(scores[candidates])]
        kept = ordered[suppress(boxes[ordered], overlap, most)]
        return [(int(place), float(scores[place])) for place in kept]
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    while alive.any() and len(selected) < most:
        best = int(np.argmax(np.where(alive, scores, -np.inf)))
        selected.append((best, float(scores[best])))
        alive[best] = False
        low = np.maximum(boxes[:, :2], boxes[best, :2])
        high = np.minimum(boxes[:, 2:], boxes[best, 2:])
        common = np.prod(np.maximum(high - low, 0), axis=1)
        union = areas + areas[best] - common
        share = np.where((areas > 0) & (areas[best] > 0), common / np.where(union > 0, union, 1), 0)
        scores *= np.where(alive & (share <= overlap), np.exp(-(share**2) * 0.5 / sigma), 1)
        alive &= (share <= overlap) & (scores > least)
    return selected


# Cumulative products.


def cumulative_product(case: KernelCase) -> Array:
    """Multiply cumulatively along the axis in input 1."""
    data = case.array(0)
    require_kind(NUMERIC, data)
    axis = normalize_axis(case.integer(1), data.ndim)
    wide = widen(data)
    order = np.s_[::-1] if case.attributes.boolean("reverse", False) else np.s_[:]
    forward = np.moveaxis(wide, axis, 0)[order]
    products = np.ones(forward.shape, wide.dtype)
    if case.attributes.boolean("exclusive", False):
        np.cumprod(forward[:-1], 0, out=products[1:])
    else:
        np.cumprod(forward, 0, out=products)
    return narrow(np.moveaxis(products[order], 0, axis), data.dtype)
