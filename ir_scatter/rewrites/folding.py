"""Constants that a fragment makes: what they hold, and what they are called."""

from typing import TYPE_CHECKING

from ir_scatter.core.fragment import NewConstant
from ir_scatter.core.model import Value

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array

_FEW = 4
_WORDS = {-1: "minus_one", 0: "zero", 1: "one", 2: "two"}


def array_of(value: Value) -> "Array | None":
    """Return the content of a constant of the fragment, None for everything else."""
    return value.constant.array if isinstance(value.constant, NewConstant) else None


def named_for(array: "Array") -> str:
    """Return a name that says the content, "" for what is long or holds no whole numbers."""
    if array.dtype.kind != "i" or not 0 < array.size <= _FEW or array.ndim > 1:
        return ""
    if array.ndim == 0 and int(array) in _WORDS:
        return _WORDS[int(array)]
    numbers = "_".join(str(number).replace("-", "minus_") for number in array.reshape(-1).tolist())
    return f"number_{numbers}" if array.ndim == 0 else f"list_{numbers}"
