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

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.ops import targets
from ir_scatter.ops.spec import IndexRange
from ir_scatter.rules.rule import Finding, Rule
from ir_scatter.rules.wording import bad_indices

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    if site.spec.index_range is not IndexRange.NON_NEGATIVE:
        return
    if site.index_array is None or site.limits is None:
        return
    bad = targets.negative(site.index_array, site.limits)
    if bad is not None:
        high = "" if bad.size is None else f" to {bad.size - 1}"
        yield bad_indices(site, bad, f"expected 0{high or ' at least'} in {site.spec.key}")


_READS = frozenset({Fact.OPERATOR, Fact.ATTRIBUTES, Fact.AXIS, Fact.INPUTS, Fact.SHAPES, Fact.INDEX_FAULTS})

RULE = Rule("SCT303", "negative-index", Severity.ERROR, _check, reads=_READS)
