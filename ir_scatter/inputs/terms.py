"""Which element of which input an index is made of, and what it may be.

A term says of one number that flows through a model: it is element * slope + offset, of one element
of an input. Terms are numbered; 0 stands for a number that no input has a part in, or several have.
"""

from dataclasses import dataclass

import numpy as np

from ir_scatter.ops.general_kernels.base import Array

NO_TERM = 0
_FARTHEST = 2**62


class Terms:
    """The terms of one run; element number n of all traced inputs together is term n + 1.

    Attributes:
        values: what each element is in this run.
    """

    def __init__(self, values: Array) -> None:
        self.values = values.astype(np.int64)
        count = len(values)
        self._elements = [np.concatenate([[-1], np.arange(count)])]
        self._slopes = [np.concatenate([[0], np.ones(count, np.int64)])]
        self._offsets = [np.zeros(count + 1, np.int64)]
        self._count = count + 1

    def add(self, elements: Array, slopes: Array, offsets: Array) -> Array:
        """Enter new terms, NO_TERM where the element is below 0; return their numbers."""
        numbers = np.arange(self._count, self._count + elements.size).reshape(elements.shape)
        self._count += elements.size
        self._elements.append(elements.reshape(-1))
        self._slopes.append(slopes.reshape(-1))
        self._offsets.append(offsets.reshape(-1))
        return np.where(elements < 0, NO_TERM, numbers)

    def look_up(self, numbers: Array) -> tuple[Array, Array, Array]:
        """Return elements (-1 for none), slopes and offsets."""
        if len(self._elements) > 1:
            for table in (self._elements, self._slopes, self._offsets):
                table[:] = [np.concatenate(table)]
        return self._elements[0][numbers], self._slopes[0][numbers], self._offsets[0][numbers]


@dataclass(frozen=True, slots=True)
class Constraint:
    """What indices of one scatter node must be, beyond what its operator demands.

    Attributes:
        are_unique: no two name the same target.
        are_non_negative: none counts from the end.
        are_equal: along every axis but the one they count on, they are equal.
    """

    are_unique: bool = False
    are_non_negative: bool = False
    are_equal: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """A place where numbers must lie in a range, and maybe differ.

    Attributes:
        name: the node, for messages.
        terms: [n, k]: n targets of k coordinates each.
        values: [n, k]: what they are in this run.
        lows: [k]: the least legal coordinates.
        highs: [k]: the greatest.
        lanes: [n]: targets of different lanes never meet.
        shape: of the array that holds them.
        is_legal: whether what they are in this run is legal.
        is_unique: whether targets should differ.
        is_repeated: whether targets repeat in this run though they should not.
        is_strict: whether it must be legal; otherwise other numbers may be of no use, and no more.
        is_scatter: whether they are the indices of a scatter node.
        wraps: whether numbers below 0 count from the end.
        may_repeat: whether the document says what comes out if targets repeat.
        are_equal: whether the targets of all lanes should be equal.
    """

    name: str
    terms: Array
    values: Array
    lows: Array
    highs: Array
    lanes: Array
    shape: tuple[int, ...]
    is_legal: bool
    is_unique: bool = False
    is_repeated: bool = False
    is_strict: bool = True
    is_scatter: bool = False
    wraps: bool = False
    may_repeat: bool = False
    are_equal: bool = False

    @property
    def least(self) -> Array:
        """Return the least legal coordinates, those that count from the end included."""
        return self.lows - (self.highs + 1) if self.wraps else self.lows

    @property
    def positions(self) -> int:
        """Return how many different targets a lane has room for."""
        return int(np.prod(np.maximum(self.highs - self.lows + 1, 0), dtype=np.float64).clip(0, _FARTHEST))

    @property
    def lane_size(self) -> int:
        """Return how many targets a lane has."""
        return int(np.bincount(self.lanes).max(initial=0))

    @property
    def has_terms(self) -> bool:
        """Tell whether some input has a part in it."""
        return bool((self.terms != NO_TERM).any())

    def describe(self) -> str:
        """Say which positions are not legal."""
        spans = ", ".join(f"{low} to {high}" for low, high in zip(self.least, self.highs, strict=True))
        return f"positions between {self.values.min()} and {self.values.max()}, expected {spans}"

    @property
    def is_crowded(self) -> bool:
        """Tell whether some lane has more targets than there is room for."""
        return self.is_unique and self.lane_size > self.positions
