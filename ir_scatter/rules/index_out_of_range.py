"""A constant index names a position that data does not have.

Why: runtimes refuse it at best; some write outside of their memory.
Applies to: every operator, wherever indices are constant or constant in effect. On a dimension of
size s an index outside of [-s, s-1] is illegal in every version. For TensorScatter in linear mode
the whole run of updates must fit.
Runtimes: OpenVINO's CPU plugin ends the process or writes silently outside for ScatterUpdate on
small integer data and for ScatterElementsUpdate below -s; onnxruntime refuses it at inference.
Example: index 7 on a dimension of size 5.
Fix: look at the producer of the indices: off by one, counted on another axis, or a padding value.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.rules.base import OF_INDEX_FAULTS, Findings, Rule, bad_indices


@Rule("SCT302", "index-out-of-range", reads=OF_INDEX_FAULTS)
def index_out_of_range(scatter: ScatterNode) -> Findings:
    bad = scatter.out_of_range
    if bad is not None:
        size = bad.size or 0
        low = -size if scatter.wraps else 0
        expected = f"{low} to {size - 1}" if size else "none: the dimension is empty"
        yield bad_indices(scatter, bad, f"expected {expected}")
