"""Kernels that interpolate between elements: Resize, Upsample, Interpolate, GridSample.

Every axis is interpolated separately. An output position is a weighted sum of a few input positions, its
taps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product as combinations
from math import ceil, floor
from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array, kind
from ir_scatter.core.shapes import show
from ir_scatter.ops.general_kernels.base import (
    NUMERIC,
    REAL,
    KernelCase,
    UnsupportedCase,
    narrow,
    normalize_axes,
    require_kind,
    widen,
)

_ROUNDING = 1e-5
"""OpenVINO adds this to a scale before it computes a size: 0.33333 times 3 elements is 1 element."""


@dataclass(frozen=True, slots=True)
class ResizedAxis:
    """An axis to interpolate.

    Attributes:
        scale: output positions per input position, as used for coordinates.
        region: first and last coordinate of the region of interest, as fractions of the axis.
    """

    number: int
    size: int
    output: int
    scale: float
    region: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Interpolation:
    """The attributes of an interpolation, with ONNX's names and values."""

    mode: str
    coordinates: str
    nearest: str = "round_prefer_floor"
    cubic: float = -0.75
    antialias: bool = False
    excludes_outside: bool = False
    extrapolation: float | None = None
    is_exact: bool = False


def _coordinates(axis: ResizedAxis, style: Interpolation, work: Any = np.float32) -> Array:
    """Return the input coordinate of each output position.

    Runtimes compute it in f32, whose rounding may decide which of two elements is nearer.
    """
    places = np.arange(axis.output, dtype=work)
    scale, half = work(axis.scale), work(0.5)
    match style.coordinates:
        case "half_pixel":
            return np.asarray((places + half) / scale - half)
        case "half_pixel_symmetric":
            adjustment = work(axis.output / (axis.scale * axis.size))
            offset = work(axis.size / 2) * (1 - adjustment)
            return np.asarray(offset + (places + half) / scale - half)
        case "pytorch_half_pixel":
            return np.asarray((places + half) / scale - half) if axis.output > 1 else places * 0
        case "align_corners":
            length = axis.scale * axis.size
            if style.is_exact and abs(length - round(length)) > _ROUNDING * length:
                raise UnsupportedCase(
                    f"align_corners with a length of {length:g}: whether it is rounded is not specified"
                )
            return np.asarray(places * work(axis.size - 1) / work(max(axis.output - 1, 1)))
        case "asymmetric":
            return np.asarray(places / scale)
        case "tf_half_pixel_for_nn":
            return np.asarray((places + half) / scale)
        case "tf_crop_and_resize":
            first, last = axis.region
            if axis.output > 1:
                step = work((last - first) * (axis.size - 1) / (axis.output - 1))
                return np.asarray(work(first * (axis.size - 1)) + places * step)
            return np.asarray(places * 0 + work(0.5 * (first + last) * (axis.size - 1)))
    raise UnsupportedCase(f"coordinate_transformation_mode is {style.coordinates}")


def _round(places: Array, style: Interpolation, *, is_smaller: bool) -> Array:
    match style.nearest:
        case "round_prefer_floor":
            return np.ceil(places - 0.5)
        case "round_prefer_ceil":
            return np.floor(places + 0.5)
        case "floor":
            return np.floor(places)
        case "ceil":
            return np.ceil(places)
        case "simple":
            return np.ceil(places) if is_smaller else np.trunc(places)
    raise UnsupportedCase(f"nearest_mode is {style.nearest}")


def _triangle(distance: Array, _: float) -> Array:
    return np.asarray(np.maximum(0, 1 - np.abs(distance)))


def _cubic(distance: Array, factor: float) -> Array:
    size = np.abs(distance)
    near = ((factor + 2) * size - (factor + 3)) * size**2 + 1
    far = ((size - 5) * size + 8) * size * factor - 4 * factor
    return np.where(size <= 1, near, np.where(size < 2, far, 0.0))


def _taps(axis: ResizedAxis, style: Interpolation, work: Any) -> tuple[Array, Array]:
    """Return the taps (input positions) of each output position, and their weights: both [output, taps]."""
    places = _coordinates(axis, style, np.float32 if style.mode == "nearest" else work)
    if style.mode == "nearest":
        nearest = _round(places, style, is_smaller=axis.scale < 1)
        return np.clip(nearest, 0, axis.size - 1).astype(np.int64)[:, None], np.ones((axis.output, 1))
    function: Callable[[Array, float], Array]
    function, reach = (_triangle, 1.0) if style.mode == "linear" else (_cubic, 2.0)
    shrink = min(axis.scale, 1.0) if style.antialias else 1.0
    half = reach / shrink
    if shrink < 1:
        first = np.floor(places - half) + 1
        count = ceil(2 * half) + 1
    else:
        first = np.floor(places) - (reach - 1)
        count = round(2 * reach)
    positions = first[:, None] + np.arange(count)
    weights = function((positions - places[:, None]) * shrink, style.cubic)
    if style.excludes_outside:
        weights = np.where((positions >= 0) & (positions < axis.size), weights, 0)
    if style.excludes_outside or shrink < 1:
        weights = weights / weights.sum(1, keepdims=True)
    return np.clip(positions, 0, axis.size - 1).astype(np.int64), weights


def interpolate_axis(data: Array, axis: ResizedAxis, style: Interpolation) -> Array:
    positions, weights = _taps(axis, style, np.float64 if data.dtype == np.float64 else np.float32)
    if style.mode == "nearest":
        return data.take(positions[:, 0], axis.number)
    shape = [1] * data.ndim
    shape[axis.number] = axis.output
    output: Any = 0
    for tap in range(positions.shape[1]):
        column = weights[:, tap].astype(data.dtype)
        if column.any():
            output = output + data.take(positions[:, tap], axis.number) * column.reshape(shape)
    return np.asarray(output)


def interpolate(case: KernelCase, data: Array, axes: Sequence[ResizedAxis], style: Interpolation) -> Array:
    """Interpolate along axes; integers are computed in floating point and truncated."""
    shape = list(data.shape)
    for axis in axes:
        shape[axis.number] = axis.output
    case.reserve(shape)
    if style.mode == "nearest":
        output = data
        for axis in axes:
            output = interpolate_axis(output, axis, style)
    else:
        require_kind(NUMERIC, data)
        wide = widen(data)
        if kind(data) != "float":
            wide = wide.astype(np.float32)
        for axis in axes:
            if axis.output != axis.size or _moves(axis, style):
                wide = interpolate_axis(wide, axis, style)
        if kind(data) != "float":
            wide = _limited(wide, data)
        output = narrow(wide, data.dtype)
    if style.coordinates == "tf_crop_and_resize":
        outside = np.zeros(shape, np.bool_)
        for axis in axes:
            places = _coordinates(axis, style)
            is_out = (places < 0) | (places > axis.size - 1)
            outside |= is_out.reshape([-1 if number == axis.number else 1 for number in range(data.ndim)])
        output = np.where(outside, np.array(style.extrapolation or 0.0).astype(data.dtype), output)
    return output


def _moves(axis: ResizedAxis, style: Interpolation) -> bool:
    places = _coordinates(axis, style)
    return not np.array_equal(places, np.arange(axis.size))


def _limited(numbers: Array, data: Array) -> Array:
    bounds = np.iinfo(widen(data).dtype)
    return np.clip(np.trunc(numbers), bounds.min, bounds.max)


# ONNX.


def resize(case: KernelCase) -> Array:
    """Compute Resize of all opsets, by scales or by sizes."""
    data, attributes = case.array(0), case.attributes
    is_old = not case.is_since(11)
    modes = {"nearest", "linear", "bilinear", "cubic"}
    mode = attributes.text("mode", "nearest", modes).removeprefix("bi")
    axes = normalize_axes(attributes.integers("axes", range(data.ndim)), data.ndim)
    ports = {"scales": 1} if is_old else {"scales": 2, "sizes": 3}
    scales = _floats(case, ports["scales"])
    sizes = [] if is_old else case.integers(ports["sizes"], default=())
    if bool(scales) == bool(sizes):
        raise UnsupportedCase("either scales or sizes must be given")
    if len(scales or sizes) != len(axes):
        raise UnsupportedCase(f"there are {len(scales or sizes)} scales or sizes for {len(axes)} axes")
    old = [data.shape[axis] for axis in axes]
    if 0 in old:
        raise UnsupportedCase(f"data is {show(data.shape)}, which has no elements to interpolate")
    if sizes:
        factors, outputs = _by_sizes(case, old, sizes)
    else:
        if min(scales) <= 0:
            raise UnsupportedCase("a scale is not above 0")
        factors, outputs = scales, [floor(size * scale) for size, scale in zip(old, scales, strict=True)]
    region = _floats(case, 1) if not is_old and case.has(1) else []
    coordinates = str(
        attributes.value("coordinate_transformation_mode", "asymmetric" if is_old else "half_pixel")
    )
    if coordinates == "tf_crop_and_resize" and len(region) != 2 * len(axes):
        raise UnsupportedCase(f"roi has {len(region)} numbers for {len(axes)} axes")
    count = len(axes)
    regions = (
        [(region[place], region[place + count]) for place in range(count)]
        if len(region) == 2 * count
        else [(0.0, 1.0)] * count
    )
    style = Interpolation(
        mode,
        coordinates,
        str(attributes.value("nearest_mode", "floor" if is_old else "round_prefer_floor")),
        attributes.number("cubic_coeff_a", -0.75),
        attributes.boolean("antialias", False),
        attributes.boolean("exclude_outside", False),
        attributes.number("extrapolation_value", 0.0),
        is_exact=True,
    )
    rows = zip(axes, old, outputs, factors, regions, strict=True)
    return interpolate(case, data, [ResizedAxis(*row) for row in rows], style)


def _floats(case: KernelCase, port: int) -> list[float]:
    if not case.has(port):
        return []
    array = case.array(port)
    if array.ndim != 1:
        raise UnsupportedCase(f"input {port} has shape {show(array.shape)}, expected a list")
    require_kind(NUMERIC, array)
    return [float(number) for number in widen(array)]


def _by_sizes(case: KernelCase, old: list[int], sizes: list[int]) -> tuple[list[float], list[int]]:
    policy = case.attributes.text(
        "keep_aspect_ratio_policy", "stretch", {"stretch", "not_larger", "not_smaller"}
    )
    factors = [new / size for new, size in zip(sizes, old, strict=True)]
    if policy == "stretch":
        return factors, list(sizes)
    factor = (min if policy == "not_larger" else max)(factors)
    return [factor] * len(old), [floor(size * factor + 0.5) for size in old]


def upsample(case: KernelCase) -> Array:
    """Compute Upsample. Scales are an input, an attribute, or height_scale and width_scale in opset 1."""
    data, attributes = case.array(0), case.attributes
    mode = attributes.text("mode", "nearest", {"nearest", "linear", "bilinear"}).removeprefix("bi")
    if "scales" in attributes:
        scales = attributes.numbers("scales")
    elif "height_scale" in attributes:
        scales = [1.0, 1.0, attributes.number("height_scale"), attributes.number("width_scale")]
    else:
        scales = _floats(case, 1)
    if len(scales) != data.ndim or min(scales, default=0) <= 0 or 0 in data.shape:
        raise UnsupportedCase(f"the scales are {scales} for data of shape {show(data.shape)}")
    outputs = [floor(size * scale) for size, scale in zip(data.shape, scales, strict=True)]
    rows = zip(range(data.ndim), data.shape, outputs, scales, strict=True)
    return interpolate(
        case, data, [ResizedAxis(*row) for row in rows], Interpolation(mode, "asymmetric", "floor")
    )


# OpenVINO.


def interpolate_ir(case: KernelCase) -> Array:
    """Compute OpenVINO's Interpolate: version 1 by sizes, 4 and 11 by sizes or scales."""
    data, attributes = case.array(0), case.attributes
    version = 11 if case.is_since(11) else 4 if case.is_since(4) else 1
    words = {"nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"}
    mode = attributes.text("mode", None, words)
    begin, end = (_filled(attributes.integers(name, ()), data.ndim) for name in ("pads_begin", "pads_end"))
    padded = np.pad(data, list(zip(begin, end, strict=True)), constant_values=np.zeros((), data.dtype))
    if 0 in padded.shape:
        raise UnsupportedCase(f"data is {show(padded.shape)}, which has no elements to interpolate")
    if version == 1:
        axes = normalize_axes(attributes.integers("axes"), data.ndim)
        sizes: list[int] | None = case.integers(1)
        scales: list[float] = []
        coordinates = "align_corners" if attributes.boolean("align_corners", True) else "asymmetric"
        nearest = "simple"
    else:
        port = 3 if version == 4 else 2
        axes = normalize_axes(case.integers(port, default=range(data.ndim)), data.ndim)
        words = {"sizes", "scales"}
        by_sizes = attributes.text("shape_calculation_mode", None, words) == "sizes"
        sizes = case.integers(1) if by_sizes else None
        scales = [] if by_sizes else _floats(case, 2 if version == 4 else 1)
        coordinates = str(attributes.value("coordinate_transformation_mode", "half_pixel"))
        nearest = str(attributes.value("nearest_mode", "round_prefer_floor"))
    if len(axes) != len(sizes if sizes is not None else scales):
        raise UnsupportedCase(f"there are {len(sizes or scales)} sizes or scales for {len(axes)} axes")
    old = [padded.shape[axis] for axis in axes]
    if sizes is None:
        sizes = [floor(size * (scale + _ROUNDING)) for size, scale in zip(old, scales, strict=True)]
    else:
        scales = [new / size for new, size in zip(sizes, old, strict=True)]
    antialias = attributes.boolean("antialias", False)
    cubic = attributes.number("cube_coeff", -0.75)
    excludes = False
    if mode.endswith("pillow"):
        mode, antialias, excludes, coordinates = mode.removesuffix("_pillow")[2:], True, True, "half_pixel"
    elif mode == "linear":
        excludes = True
    elif mode == "linear_onnx":
        mode, antialias = "linear", False
    elif antialias:
        antialias = False  # only the linear modes read it
    rows = zip(axes, old, sizes, scales, strict=True)
    style = Interpolation(mode, coordinates, nearest, cubic, antialias, excludes)
    return interpolate(case, padded, [ResizedAxis(*row) for row in rows], style)


def _filled(numbers: Sequence[int], rank: int) -> list[int]:
    return [*numbers, *[0] * (rank - len(numbers))][:rank] if len(numbers) <= rank else list(numbers)


# Grids.


def grid_sample(case: KernelCase) -> Array:
    """Sample data [batch, channels, *spatial] at the coordinates in a grid [batch, *output, rank]."""
    data, grid = case.arrays(2)
    require_kind(REAL, grid)
    attributes = case.attributes
    modes = {"bilinear", "linear", "nearest", "bicubic", "cubic"}
    mode = attributes.text("mode", "bilinear", modes).removeprefix("bi")
    padding = attributes.text("padding_mode", "zeros", {"zeros", "border", "reflection"})
    aligns = attributes.boolean("align_corners", False)
    rank = data.ndim - 2
    if rank < 1 or grid.ndim != data.ndim or grid.shape[-1] != rank or grid.shape[0] != data.shape[0]:
        raise UnsupportedCase(f"data is {show(data.shape)}, and grid {show(grid.shape)}")
    if kind(data) != "float" and mode != "nearest":
        raise UnsupportedCase(f"data is {data.dtype}, expected floating-point numbers for mode {mode}")
    case.reserve((*data.shape[:2], *grid.shape[1:-1]))
    spatial = data.shape[2:]
    if 0 in spatial:
        raise UnsupportedCase("data has no elements to sample")
    numbers = widen(grid).astype(np.result_type(widen(grid).dtype, np.float32))
    numbers = numbers.reshape(data.shape[0], -1, rank)
    # a position begins with x, the coordinate on the last axis
    places = [_unnormalized(numbers[..., rank - 1 - axis], size, aligns) for axis, size in enumerate(spatial)]
    if mode in {"nearest", "linear"} and padding != "zeros":
        places = [_inside(place, size, padding, aligns) for place, size in zip(places, spatial, strict=True)]
    taps = [_grid_taps(place, mode) for place in places]
    wide = widen(data) if mode != "nearest" else data
    flat = wide.reshape(*data.shape[:2], -1)
    output: Any = 0
    for chosen in combinations(*taps):
        weight: Any = 1
        positions: Any = 0
        is_inside: Any = True
        for (position, share), size in zip(chosen, spatial, strict=True):
            if padding == "reflection":
                position = np.rint(_reflected(position, size, aligns))
            if padding == "zeros":
                is_inside = is_inside & (position >= 0) & (position <= size - 1)
            bounded = np.clip(np.nan_to_num(position), 0, size - 1).astype(np.int64)
            positions = positions * size + bounded
            weight = weight * share
        part = np.take_along_axis(flat, positions[:, None, :], 2)
        if padding == "zeros":
            part = np.where(is_inside[:, None, :], part, part.dtype.type(0))
        output = part if mode == "nearest" else output + part * weight.astype(wide.dtype)[:, None, :]
    return narrow(output, data.dtype).reshape(*data.shape[:2], *grid.shape[1:-1])


def _unnormalized(numbers: Array, size: int, aligns: bool) -> Array:
    one = numbers.dtype.type(1)
    if aligns:
        return np.asarray((numbers + one) / 2 * (size - 1))
    return np.asarray(((numbers + one) * size - one) / 2)


def _reflected(places: Array, size: int, aligns: bool) -> Array:
    """Reflect positions at the borders until they are inside."""
    low, high = (0.0, size - 1.0) if aligns else (-0.5, size - 0.5)
    span = high - low
    if span == 0:
        return np.zeros_like(places)
    distance = np.mod(np.abs(places - low), 2 * span)
    return np.where(distance > span, 2 * span - distance, distance) + low


def _inside(places: Array, size: int, padding: str, aligns: bool) -> Array:
    if padding == "reflection":
        places = _reflected(places, size, aligns)
    return np.clip(places, 0, size - 1)


def _grid_taps(places: Array, mode: str) -> list[tuple[Array, Array]]:
    if mode == "nearest":
        return [(np.rint(places), np.ones_like(places))]
    first = np.floor(places)
    share = places - first
    if mode == "linear":
        return [(first, 1 - share), (first + 1, share)]
    return [(first + offset, _cubic(share - offset, -0.75)) for offset in (-1, 0, 1, 2)]
