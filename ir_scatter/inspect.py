"""What is known of each scatter node of a model."""

from collections import Counter
from dataclasses import dataclass

from ir_scatter.analysis.facts import MAX_CONSTANT_ELEMENTS, Facts
from ir_scatter.analysis.scatter_node import Operand, Site
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.model import Model
from ir_scatter.core.shapes import show
from ir_scatter.ops.lookup import find, scatter_types

UNKNOWN = "?"


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """What is known of indices.

    Attributes:
        is_constant: whether their values are known.
        low: the least; None if there are none or they are not known.
        high: the greatest.
        repeated: how many name a target that an earlier one names; None if it is not known.
    """

    is_constant: bool
    low: int | None = None
    high: int | None = None
    repeated: int | None = None

    def __str__(self) -> str:
        if not self.is_constant:
            return "not constant"
        if self.low is None:
            return "constant, empty"
        span = f"constant {self.low}..{self.high}"
        return f"{span}, {self.repeated} repeated" if self.repeated else span


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """One scatter node.

    Attributes:
        location: where it stands.
        name: its name.
        operator: type and since-version, "ScatterND-16"; without a version where no row applies.
        inputs: type and shape of each input by the documented name, "f32[2, ?]".
        axis: as written; None if the operator has none, "?" if it is not constant.
        reduction: as written or by default; None if the operator has none.
        indices: what is known of their values.
    """

    location: Location
    name: str
    operator: str
    inputs: dict[str, str]
    axis: int | str | None
    reduction: str | None
    indices: IndexSummary


def inspect(model: Model, *, max_index_elements: int = MAX_CONSTANT_ELEMENTS) -> list[NodeSummary]:
    """List the scatter nodes of a model in the order of the file, a function's once per signature."""
    facts = Facts(max_index_elements)
    found = []
    for node in model.walk(scatter_types(model.domain)):
        lookup = find(node.domain, node.type, node.opset)
        if lookup is not None:
            found.append(_summary(Site(node, lookup, facts)))
    return found


def totals(nodes: list[NodeSummary]) -> dict[str, int]:
    """Count nodes by operator, the most frequent first."""
    counts = Counter(node.operator for node in nodes)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _summary(site: Site) -> NodeSummary:
    node = site.node
    if site.lookup.spec is None:
        return NodeSummary(node.location, node.name, site.lookup.type, {}, None, None, IndexSummary(False))
    axis: int | str | None = None
    if site.spec.axis is not None:
        axis = UNKNOWN if site.written_axis is None else site.written_axis
    reduction = None
    if site.spec.attribute("reduction") is not None:
        reduction = str(site.attribute("reduction"))
    inputs = {}
    for port in site.spec.ports:
        operand = site.operand(port.role)
        inputs[port.name] = "" if operand is None else _show(site, operand)
    operator = str(site.spec.key)
    return NodeSummary(node.location, node.name, operator, inputs, axis, reduction, _indices(site))


def _show(site: Site, operand: Operand) -> str:
    element_type = operand.element_type
    name = UNKNOWN if element_type is None else site.spec.show_type(element_type)
    shape = site.indices_shape if operand is site.indices else operand.shape
    return f"{name}{show(shape)}"


def _indices(site: Site) -> IndexSummary:
    array = site.index_array
    if array is None:
        return IndexSummary(False)
    if array.size == 0:
        return IndexSummary(True)
    repeated = None
    if site.limits is not None:
        repeated = site.repeats.count if site.repeats else 0
    return IndexSummary(True, int(array.min()), int(array.max()), repeated)
