"""Overlaps of boxes, and non-maximum suppression, for kernels that select boxes.

Boxes are [n, 4]: the two lower coordinates, then the two upper ones. The overlap of two boxes is their
intersection over union. `unit` is added to each side: 1 if upper coordinates are inclusive.
"""

from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array


def areas_of(boxes: Array, unit: float = 0.0) -> Array:
    """Return the areas of boxes."""
    one = boxes.dtype.type(unit)
    return np.asarray((boxes[:, 2] - boxes[:, 0] + one) * (boxes[:, 3] - boxes[:, 1] + one))


def overlaps(box: Array, boxes: Array, unit: float = 0.0) -> Array:
    """Return the overlap of a box with each of several boxes."""
    area = areas_of(box[None], unit)[0]
    return _shares(box, area, boxes.T, areas_of(boxes, unit), unit)


def _shares(box: Array, area: Any, sides: Array, areas: Array, unit: float) -> Array:
    """Return the overlap of a box with each of several boxes; `sides` are their coordinates as [4, n]."""
    one, zero = box.dtype.type(unit), box.dtype.type(0)
    first = np.minimum(box[2], sides[2]) - np.maximum(box[0], sides[0]) + one
    second = np.minimum(box[3], sides[3]) - np.maximum(box[1], sides[1]) + one
    common = np.maximum(first, zero) * np.maximum(second, zero)
    union = area + areas - common
    is_real = (area > 0) & (areas > 0) & (union > 0)
    return np.asarray(np.where(is_real, common / np.where(is_real, union, 1), zero))


_CHUNK = 64
"""Number of boxes that are compared with each other at a time."""


def suppress(boxes: Array, threshold: float, most: int, *, unit: float = 0.0) -> list[int]:
    """Return the positions of at most `most` boxes that do not overlap an earlier selected box too much.

    Boxes are sorted by score. Boxes of a chunk that overlap a box of an earlier chunk are removed first; then
    the boxes of the chunk are compared with each other.
    """
    kept = list[int]()
    for first in range(0, len(boxes), _CHUNK):
        chunk = boxes[first : first + _CHUNK]
        alive = np.ones(len(chunk), np.bool_)
        if kept:
            alive &= ~(_pairs(boxes[kept], chunk, unit) > threshold).any(0)
        clashes = _pairs(chunk, chunk, unit) > threshold
        for place in range(len(chunk)):
            if len(kept) >= most:
                return kept
            if alive[place]:
                kept.append(first + place)
                alive[place + 1 :] &= ~clashes[place, place + 1 :]
    return kept


def _pairs(first: Array, second: Array, unit: float) -> Array:
    """Return the overlap of each box of one list with each box of another list."""
    return _shares(
        first.T[:, :, None], areas_of(first, unit)[:, None], second.T, areas_of(second, unit), unit
    )


_LEAST_DECAYED = 0.5
"""A decaying threshold is multiplied only while it is above this number."""


def suppress_adaptively(boxes: Array, threshold: float, decay: float, unit: float) -> list[int]:
    """Return the positions of selected boxes; each selection multiplies the threshold by `decay`."""
    kept = list[int]()
    for place, box in enumerate(boxes):
        if kept and (overlaps(box, boxes[kept], unit) >= threshold).any():
            continue
        kept.append(place)
        if decay < 1 and threshold > _LEAST_DECAYED:
            threshold *= decay
    return kept


def descending(scores: Array) -> Array:
    """Return the positions that sort scores in descending order; equal scores keep their order."""
    return np.argsort(-scores, kind="stable")
