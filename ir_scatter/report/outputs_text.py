"""What the outputs of a model look like: a table for people."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ir_scatter.evaluate.summary import summarize
from ir_scatter.report.tables import Table, table_text

if TYPE_CHECKING:
    from ir_scatter.core.constants import Array


def render(outputs: "Mapping[str, Array]", *, color: bool = False, width: int | None = None) -> str:
    """Name, type, shape, least and greatest element of each output."""
    header = ("output", "type", "shape", "min", "max")
    return table_text(Table(header, summarize(outputs), keeps_empty=True), color=color, width=width)
