"""A copy of data, which is most of the time of a scatter with few updates."""

from threading import Thread
from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    from ir_scatter.constants import Array

_LARGE = 1 << 24
"""Bytes from which on two threads copy faster than one, though one has to be started."""


def fresh_copy(array: "Array") -> "Array":
    """Return a contiguous copy; the two halves of a large array are copied at the same time."""
    if array.nbytes < _LARGE or array.dtype.hasobject or not array.flags.c_contiguous:
        return numpy.array(array, order="C", copy=True)
    copy = numpy.empty_like(array, order="C", subok=False)
    source, target = array.reshape(-1), copy.reshape(-1)
    half = source.size // 2
    helper = Thread(target=numpy.copyto, args=(target[half:], source[half:]))
    helper.start()
    numpy.copyto(target[:half], source[:half])
    helper.join()
    return copy
