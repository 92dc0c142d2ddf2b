"""Ranks that cannot go together, where too little is known for any rule to say so.

A rule holds an input against data. Where the rank of data, or of indices, is only known when the model
runs, the other inputs may still tell that no such model can run: there is nothing to rewrite then.
"""

from ir_scatter.analysis.scatter_node import Operand, ScatterNode
from ir_scatter.core.shapes import show
from ir_scatter.ops.spec import Layout


def contradiction(site: ScatterNode) -> str:
    """Say why no data fits the other inputs, "" if some does."""
    data, source = site.data, site.spec.axis
    found = _of_same_rank(site)
    if data is None or found is None or found.shape is None:
        return ""
    rank = len(found.shape)
    told = f"{found.port.name} is {show(found.shape)} of rank {rank}"
    if rank < data.port.min_rank:
        return f"{told}, expected rank {data.port.min_rank} at least, like {data.port.name}"
    if data.shape is not None and rank != len(data.shape):
        return f"{told}, expected rank {len(data.shape)} like {data.port.name}"
    axis = site.written_axis
    if axis is None or source is None:
        return ""
    is_legal = -rank <= axis < rank and axis % rank not in source.excluded
    return "" if is_legal else f"{told}, so that axis {axis} is none of {data.port.name}"


def _of_same_rank(site: ScatterNode) -> Operand | None:
    """Return an input whose rank is known and must be that of data."""
    same = {Layout.ELEMENTS: (site.indices, site.updates), Layout.SEQUENCE: (site.updates,)}
    operands = same.get(site.spec.layout, ())
    return next((operand for operand in operands if operand and operand.shape is not None), None)
