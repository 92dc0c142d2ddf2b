"""What is computed at once, because it is made of constants of the fragment itself."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ir_scatter.fragment import NewConstant
from ir_scatter.model import Value

if TYPE_CHECKING:
    from ir_scatter.constants import Array

FOLDS: Mapping[str, Callable[..., "Array"]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "floor_mod": np.mod,
    "equal": np.equal,
    "less": np.less,
}


def array_of(value: Value) -> "Array | None":
    """Return the content of a constant of the fragment, None for everything else."""
    return value.constant.array if isinstance(value.constant, NewConstant) else None


def cut(array: "Array", first: "Array", last: "Array", axes: Sequence[int]) -> "Array":
    """Cut pieces out along axes."""
    place = [slice(None)] * array.ndim
    for axis, start, stop in zip(axes, first.tolist(), last.tolist(), strict=True):
        place[axis] = slice(start, stop)
    return array[tuple(place)]
