"""Kernels of signals: Fourier transforms, windows, frames."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.shapes import show
from ir_scatter.ops.general_kernels.base import (
    REAL,
    WHOLE,
    KernelCase,
    UnsupportedCase,
    narrow,
    normalize_axes,
    normalize_axis,
    require_kind,
    widen,
)


def _complex(data: Array) -> Array:
    """Return complex numbers for pairs in the last axis, or for real numbers if it has length 1."""
    if data.shape[-1] == 1:
        return data[..., 0] + 0j
    if data.shape[-1] != 2:
        raise UnsupportedCase(
            f"data is {show(data.shape)}, expected pairs or single numbers in its last axis"
        )
    return data[..., 0] + 1j * data[..., 1]


def _pairs(numbers: Array) -> Array:
    return np.stack([numbers.real, numbers.imag], -1)


def dft(case: KernelCase) -> Array:
    """Compute ONNX's DFT. The axis is an input since opset 20, and an attribute before."""
    data = case.array(0)
    require_kind(REAL, data)
    is_inverse, is_onesided = (case.attributes.boolean(name, False) for name in ("inverse", "onesided"))
    if case.is_since(20):
        axis = case.integer(2) if case.has(2) else -2
    else:
        axis = case.attributes.integer("axis", 1)
    axis = normalize_axis(axis, data.ndim)
    if axis == data.ndim - 1:
        raise UnsupportedCase("the axis is the one of real and imaginary parts, expected another")
    wide = widen(data)
    length = case.integer(1) if case.has(1) else None
    if length is not None and length < 1:
        raise UnsupportedCase(f"dft_length is {length}, expected 1 or more")
    if is_inverse and is_onesided:
        return narrow(np.fft.irfft(_complex(wide), length, axis)[..., None], data.dtype)
    numbers = (np.fft.ifft if is_inverse else np.fft.fft)(_complex(wide), length, axis)
    if is_onesided:
        numbers = numbers.take(range(numbers.shape[axis] // 2 + 1), axis)
    return narrow(_pairs(numbers), data.dtype)


def _signal(case: KernelCase, rank: int) -> tuple[tuple[int, ...], list[int] | None]:
    axes = normalize_axes(case.integers(1), rank)
    sizes = case.integers(2) if case.has(2) else None
    if sizes is not None and len(sizes) != len(axes):
        raise UnsupportedCase(f"there are {len(sizes)} sizes for {len(axes)} axes")
    return axes, sizes


def _fitted(numbers: Array, axes: Sequence[int], sizes: Sequence[int] | None) -> Array:
    """Crop, or pad with zeros, to sizes; a size of -1 keeps the dimension."""
    for axis, size in zip(axes, sizes or (), strict=False):
        if size < 0 or size == numbers.shape[axis]:
            continue
        if size < numbers.shape[axis]:
            numbers = numbers.take(range(size), axis)
        else:
            widths = [(0, 0)] * numbers.ndim
            widths[axis] = (0, size - numbers.shape[axis])
            numbers = np.pad(numbers, widths)
    return numbers


fft, ifft = np.fft.fftn, np.fft.ifftn


def fourier(function: Any) -> Any:
    """Return the kernel of OpenVINO's DFT or IDFT."""

    def kernel(case: KernelCase) -> Array:
        data = case.array(0)
        require_kind(REAL, data)
        numbers = _complex(widen(data))
        axes, sizes = _signal(case, numbers.ndim)
        return narrow(_pairs(function(_fitted(numbers, axes, sizes), axes=axes)), data.dtype)

    return kernel


def real_fourier(case: KernelCase) -> Array:
    """Compute RDFT: from real numbers to the first half of their transform."""
    data = case.array(0)
    require_kind(REAL, data)
    axes, sizes = _signal(case, data.ndim)
    return narrow(_pairs(np.fft.rfftn(_fitted(widen(data), axes, sizes), axes=axes)), data.dtype)


def inverse_real_fourier(case: KernelCase) -> Array:
    """Compute IRDFT: from the first half of a transform to real numbers."""
    data = case.array(0)
    require_kind(REAL, data)
    numbers = _complex(widen(data))
    axes, sizes = _signal(case, numbers.ndim)
    last = sizes[-1] if sizes else -1
    length = 2 * (numbers.shape[axes[-1]] - 1) if last < 0 else last
    numbers = _fitted(numbers, axes[:-1], None if sizes is None else sizes[:-1])
    if len(axes) > 1:
        numbers = np.fft.ifftn(numbers, axes=axes[:-1])
    return narrow(np.fft.irfft(numbers, length, axes[-1]), data.dtype)


def stft_ir(case: KernelCase) -> Array:
    """Compute OpenVINO's STFT: the first half of the transform of windowed frames of a signal."""
    data, window = case.arrays(2)
    require_kind(REAL, data, window)
    size, step = case.integer(2), case.integer(3)
    signal = widen(data).reshape(-1, data.shape[-1])
    if not 0 < window.size <= size or step < 1 or size > signal.shape[-1]:
        raise UnsupportedCase(f"frame_size is {size}, and frame_step {step}")
    before = (size - window.size) // 2
    full = np.pad(widen(window), (before, size - window.size - before))
    frames = np.lib.stride_tricks.sliding_window_view(signal, size, -1)[:, ::step]
    output = _pairs(np.fft.rfft(frames * full, axis=-1))  # [batch, frames, size / 2 + 1, 2]
    if case.attributes.boolean("transpose_frames"):
        output = output.swapaxes(1, 2)
    return narrow(output if data.ndim > 1 else output[0], data.dtype)


def inverse_stft(case: KernelCase) -> Array:
    """Compute ISTFT of an IR: add up overlapping frames, and divide by the sum of squared windows."""
    data, window = case.arrays(2)
    require_kind(REAL, data, window)
    size, step = case.integer(2), case.integer(3)
    numbers = _complex(widen(data))
    numbers = numbers.reshape(-1, *numbers.shape[-2:])  # [batch, size / 2 + 1, frames]
    if not 0 < window.size <= size or step < 1 or numbers.shape[1] != size // 2 + 1:
        raise UnsupportedCase(f"frame_size is {size}, frame_step {step}, and data {show(data.shape)}")
    before = (size - window.size) // 2
    full = np.pad(widen(window), (before, size - window.size - before))
    frames = np.fft.irfft(numbers, size, axis=1)
    if case.attributes.boolean("normalized"):
        frames = frames * size**0.5
    count = frames.shape[2]
    length = size + step * (count - 1)
    signal, weight = np.zeros((len(frames), length), frames.dtype), np.zeros(length, frames.dtype)
    for number in range(count):
        place = slice(number * step, number * step + size)
        signal[:, place] += frames[:, :, number] * full
        weight[place] += full * full
    signal = np.where(weight > _LEAST_WEIGHT, signal / np.where(weight > _LEAST_WEIGHT, weight, 1), 0)
    is_centred, length_needed = case.attributes.boolean("center"), case.integer(4) if case.has(4) else None
    if is_centred:
        signal = signal[:, size // 2 :]
    if length_needed is not None:
        signal = np.pad(signal[:, :length_needed], [(0, 0), (0, max(0, length_needed - signal.shape[1]))])
    elif is_centred:
        signal = signal[:, : length - size // 2 * 2]
    return narrow(signal if data.ndim > 3 else signal[0], data.dtype)


_LEAST_WEIGHT = 1e-11
"""Where squared windows add up to less, nothing is known of the signal, and it is 0."""


def stft(case: KernelCase) -> Array:
    """Compute ONNX's STFT: the transform of windowed frames of a signal, by default its first half."""
    data = case.array(0)
    require_kind(REAL, data)
    step = case.integer(1)
    window = widen(case.array(2)) if case.has(2) else None
    size = case.integer(3) if case.has(3) else 0 if window is None else window.size
    numbers = widen(data) if data.ndim == 3 else widen(data)[..., None]
    is_onesided = case.attributes.boolean("onesided", True)
    signal = numbers[..., 0] if numbers.shape[-1] == 1 else _complex(numbers)
    if step < 1 or not 0 < size <= signal.shape[1]:
        raise UnsupportedCase(f"frame_length is {size}, and frame_step {step}")
    if window is not None and window.size != size:
        raise UnsupportedCase(f"window has {window.size} elements, and frame_length is {size}")
    frames = np.lib.stride_tricks.sliding_window_view(signal, size, 1)[:, ::step]
    if window is not None:
        frames = frames * window
    transformed = np.fft.fft(frames, axis=-1)
    if is_onesided:
        transformed = transformed[..., : size // 2 + 1]
    return narrow(_pairs(transformed), data.dtype)


def cosine_window(case: KernelCase, coefficients: Sequence[float]) -> Array:
    """Return a periodic or symmetric window, an alternating sum of cosines."""
    array = case.array(0)
    require_kind(WHOLE, array)
    if array.size != 1:
        raise UnsupportedCase(f"size has shape {show(array.shape)}, expected one number")
    size = int(array.reshape(-1)[0])
    case.reserve((size,))
    period = size if case.attributes.boolean("periodic", True) else size - 1
    angles = 2 * np.pi * np.arange(size) / max(period, 1)
    total: Any = np.zeros(size)
    for order, coefficient in enumerate(coefficients):
        total = total + (-1) ** order * coefficient * np.cos(order * angles)
    return np.asarray(total).astype(
        case.dtype("output_datatype") if "output_datatype" in case.attributes else np.float32
    )


def hann_window(case: KernelCase) -> Array:
    return cosine_window(case, (0.5, 0.5))


def hamming_window(case: KernelCase) -> Array:
    return cosine_window(case, (25 / 46, 21 / 46))


def blackman_window(case: KernelCase) -> Array:
    return cosine_window(case, (0.42, 0.5, 0.08))
