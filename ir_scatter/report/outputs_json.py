"""What the outputs of a model look like, for programs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ir_scatter.report.characters import as_document, dumps
from ir_scatter.report.outputs_text import summarize

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array


def render(outputs: "Mapping[str, Array]") -> str:
    """One JSON object; the least and greatest element are null where there is no order of elements."""
    rows = [
        {"name": name, "type": type, "shape": outputs[name].shape, "min": low or None, "max": high or None}
        for name, type, _, low, high in summarize(outputs)
    ]
    return dumps(as_document(outputs=rows))
