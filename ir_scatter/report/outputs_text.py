"""What the outputs of a model look like: a table for people."""

from collections.abc import Mapping

import numpy as np

from ir_scatter.core.arrays import Array, kind
from ir_scatter.core.element_types import from_dtype
from ir_scatter.core.shapes import show
from ir_scatter.report.tables import Table, table_text


def render(outputs: Mapping[str, Array], *, color: bool = False, width: int | None = None) -> str:
    """Name, type, shape, least and greatest element of each output."""
    header = ("output", "type", "shape", "min", "max")
    return table_text(Table(header, summarize(outputs), keeps_empty=True), color=color, width=width)


def summarize(outputs: Mapping[str, Array]) -> list[tuple[str, str, str, str, str]]:
    """Return name, type, shape, least and greatest element of each output.

    The last two are empty where there are no elements, or no order of them.
    """
    return [(name, _type(array), show(array.shape), *_ends(array)) for name, array in outputs.items()]


def _type(array: Array) -> str:
    known = from_dtype(array.dtype)
    return array.dtype.name if known is None else known.name


def _ends(array: Array) -> tuple[str, str]:
    if not array.size or kind(array) in {"string", "complex"}:
        return "", ""
    if kind(array) == "float":
        numbers = array if array.dtype == np.float64 else array.astype(np.float32)
        return f"{numbers.min():g}", f"{numbers.max():g}"
    numbers = array if array.dtype.kind in "iub" else array.astype(np.int16)
    return str(int(numbers.min())), str(int(numbers.max()))
