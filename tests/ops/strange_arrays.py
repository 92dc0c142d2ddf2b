"""Arrays that hold what plain ones do, and are not what NumPy makes by itself."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any


def plain(array: Array) -> Array:
    return array


def unpickled(array: Array) -> Array:
    return pickle.loads(pickle.dumps(array))


def swapped(array: Array) -> Array:
    return array if array.dtype.hasobject else array.astype(array.dtype.newbyteorder())


def equal_dtype(array: Array) -> Array:
    return array if array.dtype.hasobject else array.view(array.dtype.newbyteorder("="))


def copied_dtype(array: Array) -> Array:
    return array if array.dtype.hasobject else array.view(np.dtype(array.dtype, copy=True))


def unaligned(array: Array) -> Array:
    if array.dtype.hasobject:
        return array
    room = np.zeros(array.nbytes + 1, np.uint8)
    room[1:] = np.frombuffer(array.tobytes(), np.uint8)
    return room[1:].view(array.dtype).reshape(array.shape)


def read_only(array: Array) -> Array:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def strided(array: Array) -> Array:
    if not array.ndim:
        return array
    wide = np.zeros((*array.shape[:-1], array.shape[-1] * 2), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


def unaligned_and_swapped(array: Array) -> Array:
    return unaligned(swapped(array))


FORMS: dict[str, Callable[[Array], Array]] = {
    form.__name__: form
    for form in (
        unpickled, swapped, equal_dtype, copied_dtype, unaligned, read_only, strided, unaligned_and_swapped,
    )
}  # fmt: skip
