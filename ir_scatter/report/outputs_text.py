"""A summary of a model's outputs as a table."""

from collections.abc import Mapping

import numpy as np

from ir_scatter.core.arrays import Array, kind
from ir_scatter.core.element_types import from_dtype
from ir_scatter.core.shapes import show
from ir_scatter.report.characters import Table, table_text


def render(outputs: Mapping[str, Array], *, color: bool = False, width: int | None = None) -> str:
    """Return a table with name, type, shape, least and greatest element of each output."""
    header = ("output", "type", "shape", "min", "max")
    return table_text(Table(header, summarize(outputs), keeps_empty=True), color=color, width=width)


def summarize(outputs: Mapping[str, Array]) -> list[tuple[str, str, str, str, str]]:
    """Return name, type, shape, least and greatest element of each output.

    The last two are "" for empty, string and complex outputs.
    """
    rows = []
    for name, array in outputs.items():
        element_type = from_dtype(array.dtype)
        ends = ("", "")
        if array.size and kind(array) == "float":
            numbers = array if array.dtype == np.float64 else array.astype(np.float32)
            ends = f"{numbers.min():g}", f"{numbers.max():g}"
        elif array.size and kind(array) not in {"string", "complex"}:
            numbers = array if array.dtype.kind in "iub" else array.astype(np.int16)
            ends = str(int(numbers.min())), str(int(numbers.max()))
        rows.append(
            (name, array.dtype.name if element_type is None else element_type.name, show(array.shape), *ends)
        )
    return rows
