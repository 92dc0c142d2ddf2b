"""A constant index is negative where the version forbids it.

Why: counting from the end came with later versions; here the text says error.
Applies to: ScatterUpdate-3, ScatterNDUpdate-3, and TensorScatter in linear mode. A warning for
ScatterElementsUpdate-3, where runtimes count from the end as meant.
Runtimes: ScatterUpdate: CPU refuses it or writes outside its memory, GPU writes elsewhere.
ScatterNDUpdate-3: CPU counts from the end, GPU writes elsewhere. ScatterElementsUpdate-3: both
count from the end.
Example: index -1 of ScatterUpdate on a dimension of size 5: write 4.
Fix: add the size of the dimension to negative indices, or use ScatterNDUpdate-15 or
ScatterElementsUpdate-12, which allow them.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.ops import index_values
from ir_scatter.ops.spec import IndexRange
from ir_scatter.rules.base import OF_INDEX_FAULTS, Findings, Rule, bad_indices


@Rule("SCT303", "negative-index", reads=OF_INDEX_FAULTS)
def negative_index(scatter: ScatterNode) -> Findings:
    if scatter.spec.index_range is not IndexRange.NON_NEGATIVE:
        return
    if scatter.index_array is None or scatter.limits is None:
        return
    bad = index_values.negative(scatter.index_array, scatter.limits)
    if bad is not None:
        high = "" if bad.size is None else f" to {bad.size - 1}"
        yield bad_indices(scatter, bad, f"expected 0{high or ' at least'} in {scatter.spec.key}")
