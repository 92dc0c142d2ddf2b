"""Kernels that pool regions of interest of feature maps [batch, channels, rows, columns].

A region of interest is [left, top, right, bottom]; for some operators the number of its batch precedes these.
A bin is a part of a region that becomes one output element. A sample is a place between elements whose value
is interpolated.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.shapes import show
from ir_scatter.ops.general_kernels.base import REAL, KernelCase, UnsupportedCase, narrow, require_kind, widen

_ROI = 5
"""Number of columns of a region with its batch."""


class Samples(NamedTuple):
    """Samples along one dimension of an image.

    Attributes:
        low: the position of the element before each sample.
        high: the position of the element after it.
        share: the distance of each sample from `low`, 0 to 1.
        is_inside: whether the sample counts.
    """

    low: Array
    high: Array
    share: Array
    is_inside: Array


def make_samples(places: Array, size: int) -> Samples:
    """Return the neighbours of samples. A sample at most 1 outside of the image belongs to its border."""
    is_inside = (places >= -1) & (places <= size)
    clipped = np.clip(np.where(is_inside, places, 0), 0, max(size - 1, 0))
    low = np.floor(clipped).astype(np.int64)
    return Samples(low, np.minimum(low + 1, size - 1), clipped - low, is_inside)


def _averaging(samples: Samples, size: int, bins: int, type: np.dtype[Any]) -> Array:
    """Return the matrix [bins, size] that interpolates and averages the samples of each bin."""
    matrix = np.zeros((bins, size), np.result_type(type, np.float32))
    count = max(samples.low.size // bins, 1)
    rows = np.repeat(np.arange(bins), samples.low.size // bins)
    weight = np.where(samples.is_inside, 1 / count, 0.0)
    np.add.at(matrix, (rows, samples.low), weight * (1 - samples.share))
    np.add.at(matrix, (rows, samples.high), weight * samples.share)
    return matrix.astype(type)


def _corners(picture: Array, rows: Samples, columns: Samples) -> list[tuple[Array, Array]]:
    """Return elements [channels, rows, columns] and weights of the four neighbours of each sample."""
    is_inside = rows.is_inside[:, None] & columns.is_inside
    return [
        (
            picture[:, first[:, None], second],
            np.where(is_inside, row_share[:, None] * column_share, 0).astype(picture.dtype),
        )
        for first, row_share in ((rows.low, 1 - rows.share), (rows.high, rows.share))
        for second, column_share in ((columns.low, 1 - columns.share), (columns.high, columns.share))
    ]


def align(case: KernelCase) -> Array:
    """Compute RoiAlign: the average, or the maximum, of interpolated samples in each bin."""
    data, regions, batches = case.arrays(3)
    require_kind(REAL, data, regions)
    height, width, scale, mode, is_aligned, before = _align_attributes(case)
    wide, work = widen(data), np.result_type(widen(regions).dtype, np.float32)
    scaled = (widen(regions).astype(work) + work.type(before)) * work.type(scale)
    starts, ends = scaled[:, :2], scaled[:, 2:]
    if is_aligned:
        starts, ends = starts - work.type(0.5), ends - work.type(0.5)
    sizes = ends - starts
    if not is_aligned:
        sizes = np.maximum(sizes, work.type(1))
    output = np.zeros(case.reserve((len(regions), data.shape[1], height, width)), wide.dtype)
    ratio = case.attributes.integer("sampling_ratio", 0)
    for number, batch in enumerate(_checked_batches(batches, data.shape[0])):
        places = [
            _places(starts[number, axis], sizes[number, axis], bins, ratio)
            for axis, bins in ((1, height), (0, width))
        ]
        samples = [make_samples(each, size) for each, size in zip(places, data.shape[2:], strict=True)]
        picture = wide[batch]
        if mode == "avg":
            rows, columns = (
                _averaging(each, size, bins, wide.dtype)
                for each, size, bins in zip(samples, data.shape[2:], (height, width), strict=True)
            )
            output[number] = rows @ picture @ columns.T
        elif places[0].size and places[1].size:
            output[number] = _maximum(case, picture, samples, height, width)
    return narrow(output, data.dtype)


def _align_attributes(case: KernelCase) -> tuple[int, int, float, str, bool, float]:
    """Return height, width, scale, mode, whether corners are shifted, and the shift before scaling."""
    attributes = case.attributes
    mode = attributes.text("mode", "avg" if case.is_onnx else None, {"avg", "max"})
    scale = attributes.number("spatial_scale", 1.0)
    if case.is_onnx:
        default = "half_pixel" if case.is_since(16) else "output_half_pixel"
        word = attributes.text("coordinate_transformation_mode", default, {"half_pixel", "output_half_pixel"})
        sizes = [attributes.integer(f"output_{side}", 1) for side in ("height", "width")]
        return sizes[0], sizes[1], scale, mode, word == "half_pixel", 0.0
    words = {"asymmetric", "half_pixel_for_nn", "half_pixel"}
    word = attributes.text("aligned_mode", "asymmetric", words)
    before = 0.5 if word == "half_pixel" else 0.0
    sizes = [attributes.integer(f"pooled_{side}") for side in "hw"]
    return sizes[0], sizes[1], scale, mode, word != "asymmetric", before


def _checked_batches(batches: Array, count: int) -> list[int]:
    numbers = [int(number) for number in widen(batches).reshape(-1)]
    if any(not 0 <= number < count for number in numbers):
        raise UnsupportedCase(f"a region is of a batch that is not 0 to {count - 1}")
    return numbers


def _places(start: Any, size: Any, bins: int, ratio: int) -> Array:
    """Return the positions of all samples of all bins along one dimension."""
    length = size / bins
    count = ratio or max(int(np.ceil(length)), 0)
    steps = (np.arange(count) + start.dtype.type(0.5)) * length / max(count, 1)
    return np.asarray((start + np.arange(bins)[:, None] * length + steps).reshape(-1))


def _maximum(case: KernelCase, picture: Array, samples: list[Samples], height: int, width: int) -> Array:
    """Return maxima over bins: in ONNX of the four weighted neighbours, in OpenVINO of their sum, or 0."""
    parts = [elements * weight for elements, weight in _corners(picture, *samples)]
    values: Any = np.maximum.reduce(parts) if case.is_onnx else sum(parts)
    rows, columns = (each.low.size // bins for each, bins in zip(samples, (height, width), strict=True))
    bins = values.reshape(-1, height, rows, width, columns).max((2, 4))
    return np.asarray(bins if case.is_onnx else np.maximum(bins, 0))


def align_rotated(case: KernelCase) -> Array:
    """Compute ROIAlignRotated: regions are [centre x, centre y, width, height, angle]."""
    data, regions, batches = case.arrays(3)
    require_kind(REAL, data, regions)
    height, width = (case.attributes.integer(f"pooled_{side}") for side in "hw")
    ratio, scale = case.attributes.integer("sampling_ratio"), case.attributes.number("spatial_scale")
    is_clockwise = case.attributes.boolean("clockwise_mode")
    wide, boxes = widen(data), widen(regions).astype(np.result_type(widen(regions).dtype, np.float32))
    output = np.zeros(case.reserve((len(regions), data.shape[1], height, width)), wide.dtype)
    for number, batch in enumerate(_checked_batches(batches, data.shape[0])):
        centre, sizes = boxes[number, :2] * scale - 0.5, boxes[number, 2:4] * scale
        angle = -boxes[number, 4] if is_clockwise else boxes[number, 4]
        columns, rows = (
            _places(-sizes[axis] / 2, sizes[axis], bins, ratio) for axis, bins in ((0, width), (1, height))
        )
        first, second = rows[:, None], columns
        y = first * np.cos(angle) - second * np.sin(angle) + centre[1]
        x = first * np.sin(angle) + second * np.cos(angle) + centre[0]
        values = _interpolated(wide[batch], y, x)
        counts = [len(places) // bins for places, bins in ((rows, height), (columns, width))]
        if min(counts):
            output[number] = values.reshape(-1, height, counts[0], width, counts[1]).mean((2, 4))
    return narrow(output, data.dtype)


def _interpolated(picture: Array, rows: Array, columns: Array) -> Array:
    """Interpolate an image at some positions, [channels, ...]; positions more than 1 outside result in 0."""
    first, second = make_samples(rows, picture.shape[1]), make_samples(columns, picture.shape[2])
    is_inside = first.is_inside & second.is_inside
    total: Any = 0
    for row, row_share in ((first.low, 1 - first.share), (first.high, first.share)):
        for column, column_share in ((second.low, 1 - second.share), (second.high, second.share)):
            weight = np.where(is_inside, row_share * column_share, 0).astype(picture.dtype)
            total = total + picture[:, row, column] * weight
    return np.asarray(total)


# Pooling without samples.


def _rounded(numbers: Array) -> Array:
    """Round to integers, halves away from 0."""
    return np.asarray(np.copysign(np.floor(np.abs(numbers) + 0.5), numbers))


def _pooled_size(case: KernelCase) -> list[int]:
    for name in ("output_roi", "output_size", "pooled_shape"):
        if name in case.attributes:
            return case.attributes.integers(name)
    return [case.attributes.integer(f"pooled_{side}") for side in "hw"]


def _regions(case: KernelCase) -> tuple[Array, Array, list[int]]:
    """Return data, regions [n, 5] in a sufficiently wide type, and the batch of each region."""
    data, regions = case.arrays(2)
    require_kind(REAL, data, regions)
    if regions.ndim != 2 or regions.shape[1] != _ROI or data.ndim != 4:
        raise UnsupportedCase(f"data is {show(data.shape)}, and regions are {show(regions.shape)}")
    boxes = widen(regions).astype(np.result_type(widen(regions).dtype, np.float32))
    return data, boxes, _checked_batches(np.trunc(boxes[:, 0]), data.shape[0])


def pool(case: KernelCase) -> Array:
    """Compute ROIPooling, and ONNX's MaxRoiPool: the maximum of each bin, or one interpolated element."""
    data, boxes, batches = _regions(case)
    height, width = _pooled_size(case)
    scale = boxes.dtype.type(case.attributes.number("spatial_scale", 1.0))
    is_maximum = case.attributes.text("method", "max", {"max", "bilinear"}) == "max"
    wide = widen(data)
    output = np.zeros(case.reserve((len(boxes), data.shape[1], height, width)), wide.dtype)
    function: Callable[..., Array] = _pool_maxima if is_maximum else _pool_bilinear
    for number, batch in enumerate(batches):
        region = _rounded(boxes[number, 1:] * scale) if is_maximum else boxes[number, 1:]
        output[number] = function(wide[batch], region, height, width)
    return narrow(output, data.dtype)


def _pool_maxima(picture: Array, region: Array, height: int, width: int) -> Array:
    """Return maxima of the bins of a region with integer corners; 0 for an empty bin."""
    output = np.zeros((len(picture), height, width), picture.dtype)
    bounds = []
    for axis, bins in ((1, height), (0, width)):
        size = picture.shape[1 if axis else 2]
        start = int(region[axis])
        length = picture.dtype.type(max(int(region[axis + 2]) - start + 1, 1)) / picture.dtype.type(bins)
        ends = [
            (np.floor(picture.dtype.type(place) * length), np.ceil(picture.dtype.type(place + 1) * length))
            for place in range(bins)
        ]
        bounds.append([[min(max(int(end) + start, 0), size) for end in pair] for pair in ends])
    for row, (top, bottom) in enumerate(bounds[0]):
        for column, (left, right) in enumerate(bounds[1]):
            if top < bottom and left < right:
                output[:, row, column] = picture[:, top:bottom, left:right].max((1, 2))
    return output


def _spread_places(start: Any, end: Any, bins: int, size: int) -> Array:
    """Return `bins` evenly spaced positions between two fractions of a dimension; a single bin is centred."""
    most = start.dtype.type(size - 1)
    if bins == 1:
        return np.array([start.dtype.type(0.5) * (start + end) * most])
    step = (end - start) * most / start.dtype.type(bins - 1)
    places = np.arange(bins, dtype=start.dtype) * step + start * most
    places[-1] = most * end
    return np.asarray(places)


def _pool_bilinear(picture: Array, region: Array, height: int, width: int) -> Array:
    rows, columns = (
        _spread_places(region[axis], region[axis + 2], bins, size)
        for axis, bins, size in ((1, height, picture.shape[1]), (0, width, picture.shape[2]))
    )
    is_inside = [
        (places >= 0) & (places <= size - 1)
        for places, size in ((rows, picture.shape[1]), (columns, picture.shape[2]))
    ]
    values = _interpolated(picture, *np.meshgrid(rows, columns, indexing="ij"))
    return np.where(is_inside[0][:, None] & is_inside[1], values, 0)


def pool_position_sensitive(case: KernelCase) -> Array:
    """Compute PSROIPooling: each bin of a region has its own channels."""
    data, boxes, batches = _regions(case)
    channels, size = case.attributes.integer("output_dim"), case.attributes.integer("group_size")
    scale = boxes.dtype.type(case.attributes.number("spatial_scale"))
    is_average = case.attributes.text("mode", "average", {"average", "bilinear"}) == "average"
    wide = widen(data)
    output = np.zeros(case.reserve((len(boxes), channels, size, size)), wide.dtype)
    for number, batch in enumerate(batches):
        picture, region = wide[batch], boxes[number, 1:]
        if is_average:
            output[number] = _average_of_bins(picture, region, scale, channels, size)
        else:
            output[number] = _mean_of_shares(case, picture, region * scale, channels, size)
    return narrow(output, data.dtype)


def _average_of_bins(picture: Array, region: Array, scale: Any, channels: int, size: int) -> Array:
    starts, ends = _rounded(region[:2]) * scale, (_rounded(region[2:]) + 1) * scale
    grouped = picture.reshape(channels, size, size, *picture.shape[1:])
    output = np.zeros((channels, size, size), picture.dtype)
    lengths = (ends - starts) / picture.dtype.type(size)
    for row, column in np.ndindex(size, size):
        part = []
        for axis, place in ((1, row), (0, column)):
            limit = picture.shape[1 if axis else 2]
            first = min(int(np.floor(starts[axis] + place * lengths[axis])), limit - 1)
            last = min(int(np.ceil(starts[axis] + (place + 1) * lengths[axis])), limit)
            part.append(slice(max(first, 0), max(last, 0)))
        chosen = grouped[:, row, column, part[0], part[1]]
        if chosen.size:
            output[:, row, column] = chosen.mean((1, 2))
    return output


def _mean_of_shares(case: KernelCase, picture: Array, region: Array, channels: int, size: int) -> Array:
    """Return the mean over the spatial bins; each bin contributes one interpolated element."""
    columns, rows = (case.attributes.integer(f"spatial_bins_{side}", 1) for side in "xy")
    grouped = picture.reshape(rows * columns, channels, *picture.shape[1:])
    lengths = (region[2:] - region[:2]) / np.array([columns, rows], region.dtype)
    total: Any = 0
    for number, (row, column) in enumerate(np.ndindex(rows, columns)):
        places = []
        for axis, place, limit in ((1, row, picture.shape[1]), (0, column, picture.shape[2])):
            start = region[axis] + place * lengths[axis]
            places.append(_spread_places(start, start + lengths[axis], size, limit))
        is_inside = [
            (each >= 0) & (each < limit) for each, limit in zip(places, picture.shape[1:], strict=True)
        ]
        values = _interpolated(grouped[number], *np.meshgrid(*places, indexing="ij"))
        total = total + np.where(is_inside[0][:, None] & is_inside[1], values, 0)
    return np.asarray(total / picture.dtype.type(rows * columns))


def pool_deformable(case: KernelCase) -> Array:
    """Compute DeformablePSROIPooling: bins have their own channels, and an input moves them."""
    data, boxes, batches = _regions(case)
    channels, size = case.attributes.integer("output_dim"), case.attributes.integer("group_size", 1)
    bins = [case.attributes.integer(f"spatial_bins_{side}", 1) for side in "yx"]
    deviation, parts = case.attributes.number("trans_std", 1.0), case.attributes.integer("part_size", 1)
    scale, wide = case.attributes.number("spatial_scale"), widen(data)
    moves = widen(case.array(2)) if case.has(2) else None
    output = np.zeros(case.reserve((len(boxes), channels, size, size)), wide.dtype)
    for number, batch in enumerate(batches):
        region = _rounded(boxes[number, 1:])
        starts = region[:2] * scale - 0.5
        sizes = np.maximum((region[2:] + 1) * scale - 0.5 - starts, 0.1)
        for channel, row, column in np.ndindex(channels, size, size):
            corner = starts + np.array([column, row]) * sizes / size
            if moves is not None:
                classes = channels // (moves.shape[1] // 2)
                place = (row * parts // size, column * parts // size)
                pair = moves[(number, np.s_[2 * (channel // classes) : 2 * (channel // classes) + 2], *place)]
                corner = corner + pair * deviation * sizes
            places = [
                corner[axis] + np.arange(count) * sizes[axis] / size / count
                for axis, count in ((1, bins[0]), (0, bins[1]))
            ]
            picture = wide[batch, (channel * size + row) * size + column][None]
            output[number, channel, row, column] = _mean_inside(picture, places)
    return narrow(output, data.dtype)


def _mean_inside(picture: Array, places: Sequence[Array]) -> Any:
    """Return the mean of the samples that are at most half an element outside; 0 without any."""
    kept = [
        np.clip(each[(each >= -0.5) & (each <= size - 0.5)], 0, size - 1)
        for each, size in zip(places, picture.shape[1:], strict=True)
    ]
    if not (kept[0].size and kept[1].size):
        return 0
    return _interpolated(picture, *np.meshgrid(*kept, indexing="ij")).mean()
