"""A summary of a model's outputs as JSON."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from ir_scatter.report.characters import as_document, dumps
from ir_scatter.report.outputs_text import summarize

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array


def render(outputs: "Mapping[str, Array]", *, not_computed: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return one JSON object; min and max are null for empty, string and complex outputs.

    Args:
        outputs: the computed outputs by name.
        not_computed: for each output without a result, the node that NumPy does not support.
    """
    rows = [
        {"name": name, "type": type, "shape": outputs[name].shape, "min": low or None, "max": high or None}
        for name, type, _, low, high in summarize(outputs)
    ]
    missing = [{"name": name, "after": source} for name, source in not_computed.items()]
    return dumps(as_document(outputs=rows, **({"not_computed": missing} if missing else {})))
