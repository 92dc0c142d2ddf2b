"""Summarises the scatter nodes of a model for `ir-scatter inspect` and `ir_scatter.inspect`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import cast

from ir_scatter.analysis.constants import MAX_CONSTANT_ELEMENTS, Facts
from ir_scatter.analysis.scatter_node import ScatterNode, scatter_nodes
from ir_scatter.analysis.symbolic import proof_in_words
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.display import brief, record, short_repr
from ir_scatter.core.model import Model
from ir_scatter.core.shapes import Shape, show
from ir_scatter.ops.names import OperatorName

UNKNOWN = "?"
_OWN_FIELDS = frozenset({"axis", "reduction"})
"""Attributes for which a summary has a field."""


@record()
class IndexSummary:
    """Facts about indices: least and greatest value, and how many of them repeat an earlier target.

    None stands for unknown; an empty constant has neither a least nor a greatest value, so both are None.
    `proof` states what is proven of indices that are not constant: "in range if position in 0..15"; "" if no
    proof was requested.
    """

    is_constant: bool
    low: int | None = None
    high: int | None = None
    repeated: int | None = None
    proof: str = ""

    def __str__(self) -> str:
        if not self.is_constant:
            return f"not constant, {self.proof}" if self.proof else "not constant"
        if self.low is None:
            return "constant, empty"
        span = f"constant {self.low}..{self.high}"
        return f"{span}, {self.repeated} repeated" if self.repeated else span


@record()
class NodeSummary:
    """One scatter node.

    Attributes:
        operator: type and since-version, "ScatterND-16"; without a version if no specification applies.
        inputs: type and shape of each input by its name in the specification, "f32[2, ?]".
        axis: the axis in the file, not normalised; None if the operator has none, "?" if it is not constant.
        reduction: the reduction in the file, or the default; None if the operator has none.
        shapes: the shape of each input by its name in the specification, and of the output; None for an
            unknown rank. Omitted inputs have no entry.
        attributes: the attributes in the specification, with the values in the file or the defaults.
        unusual_attributes: those of `attributes` that differ from their default and have no field here:
            `use_init_val`, `mode`.
    """

    location: Location
    name: str
    operator: OperatorName
    inputs: dict[str, str]
    axis: int | str | None
    reduction: str | None
    indices: IndexSummary
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    attributes: Mapping[str, int | str | bool | None] = field(default_factory=dict)
    unusual_attributes: Mapping[str, int | str | bool | None] = field(default_factory=dict)

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name} {text}" for name, text in self.inputs.items() if text)
        return short_repr(self, f"{self.operator} {brief(self.scope, 60)}: {inputs}; indices {self.indices}")

    @property
    def scope(self) -> str:
        """The path to the node inside the model: "If_23:then_body/scatter"."""
        return self.location.scope


@record()
class Inspection:
    """The scatter nodes of one file; for an unreadable file, an error and no format."""

    path: str
    format: str | None
    nodes: tuple[NodeSummary, ...]
    error: str = ""


def inspect(
    model: Model, *, max_index_elements: int = MAX_CONSTANT_ELEMENTS, proves: bool = False
) -> list[NodeSummary]:
    """List the scatter nodes of a model in the order of the file.

    A node in a function is listed once for each signature (input types and shapes) of the function's calls.
    """
    summaries = []
    for scatter in scatter_nodes(model, Facts(max_index_elements, model)):
        summary = _summary(scatter)
        if proves and scatter.lookup.spec is not None and not summary.indices.is_constant:
            summary = replace(summary, indices=IndexSummary(False, proof=proof_in_words(scatter)))
        summaries.append(summary)
    return summaries


def totals(nodes: Sequence[NodeSummary]) -> dict[str, int]:
    counts = Counter(node.operator for node in nodes)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _summary(scatter: ScatterNode) -> NodeSummary:
    node, spec = scatter.node, scatter.lookup.spec
    if spec is None:
        type = cast(OperatorName, scatter.lookup.type)
        return NodeSummary(node.location, node.name, type, {}, None, None, IndexSummary(False))
    axis = UNKNOWN if scatter.written_axis is None else scatter.written_axis
    attributes = {row.name: scatter.attribute(row.name) for row in spec.attributes}
    defaults = {row.name: row.default for row in spec.attributes if row.name not in _OWN_FIELDS}
    inputs, shapes = dict[str, str](), dict[str, Shape]()
    for port in spec.ports:
        operand, inputs[port.name] = scatter.operand(port.role), ""
        if operand is not None:
            shapes[port.name] = scatter.indices_shape if operand is scatter.indices else operand.shape
            element_type = operand.element_type
            type_text = UNKNOWN if element_type is None else spec.show_type(element_type)
            inputs[port.name] = f"{type_text}{show(shapes[port.name])}"
    return NodeSummary(
        node.location,
        node.name,
        cast(OperatorName, str(spec.key)),
        inputs,
        axis if spec.axis else None,
        None if spec.attribute("reduction") is None else str(scatter.attribute("reduction")),
        _indices(scatter),
        {**shapes, spec.output: scatter.data_shape},
        attributes,
        {name: attributes[name] for name, default in defaults.items() if attributes[name] != default},
    )


def _indices(scatter: ScatterNode) -> IndexSummary:
    array = scatter.index_array
    if array is None or array.size == 0:
        return IndexSummary(array is not None)
    repeated = None
    if scatter.limits is not None:
        repeated = scatter.repeats.count if scatter.repeats else 0
    return IndexSummary(True, int(array.min()), int(array.max()), repeated)
