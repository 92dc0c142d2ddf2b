"""Groups scatter nodes that differ only in names and constants, since networks repeat their layers.

A rule or rewrite declares the facts that it reads. If all nodes of a group share these facts, its result for
one node holds for the whole group. Grouping saves time and never changes a result:

    layer1/update: ScatterUpdate-3, data [8, 64], indices [1], axis 0    representative, checked
    layer2/update: ScatterUpdate-3, data [8, 64], indices [1], axis 0    same signature, gets its findings
    layer3/update: ScatterUpdate-3, data [8, 96], indices [1], axis 0    other shapes, checked
"""

from collections.abc import Hashable
from enum import StrEnum
from functools import cache
from operator import attrgetter

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.model import OpKey, Value, exact_key
from ir_scatter.core.tensors import FEW
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import Role


class Fact(StrEnum):
    """A kind of fact about a scatter node that a rule or a rewrite may read.

    A rule or a rewrite declares all facts that it reads. Nodes with equal facts are handled once. A rule that
    reads a fact which the nodes of a group do not share is checked for each node.
    """

    OPERATOR = "operator"
    """Domain, type and opset, and the specification that applies."""
    ATTRIBUTES = "attributes"
    """All attributes, written or default, including the reduction."""
    AXIS = "axis"
    """The constant axis, or the bounds of a computed one."""
    INPUTS = "inputs"
    """The number of inputs and outputs; which inputs are omitted, unconnected or the same value."""
    SHAPES = "shapes"
    """Shapes of inputs and outputs, as far as they are known."""
    TYPES = "types"
    """Element types of inputs and outputs."""
    STORED = "stored"
    """Stored shapes and types of inputs and outputs, and whether runtimes refuse wrong ones."""
    CONSTANCY = "constancy"
    """Whether the indices are constants, or can be computed from constants."""

    INDEX_FAULTS = "index-faults"
    """Faulty indices. Constant indices with their origin, if one is out of range, negative or repeated, and
    whether all updates of a target are equal; computed indices that are always out of range, and when the
    node runs; for other indices only whether updates are equal, and only if indices outnumber targets."""
    UNREAD_INDICES = "unread-indices"
    """The constant that the indices come from, if it is too large to be read."""

    CONDITIONS = "conditions"
    """Which conditions on the indices are proven; rewrites read them through `View.proof`, which records
    that."""
    NOTED_INDICES = "noted-indices"
    """The values of constant indices (rewrites: `View.index_numbers`, which records that the result is valid
    for these values only)."""
    INDICES = "indices"
    """The values of the indices."""
    VALUES = "values"
    """The values of data and updates."""
    PRODUCERS = "producers"
    """The nodes upstream of the inputs, and the node whose body contains this one."""
    NAMES = "names"
    """Names and locations of the node and its inputs."""


EVERYTHING = frozenset(Fact)
"""All facts: a rule that declares none may read them all."""

SIGNATURE = frozenset(
    {
        Fact.OPERATOR, Fact.ATTRIBUTES, Fact.AXIS, Fact.INPUTS, Fact.SHAPES, Fact.TYPES, Fact.STORED,
        Fact.CONSTANCY,
    }
)  # fmt: skip
"""The facts that all nodes with the same signature share."""

FAULTS = frozenset({Fact.INDEX_FAULTS, Fact.UNREAD_INDICES})
"""Facts that are empty for a node without faulty indices (`ScatterNode.has_faults`)."""

REMEMBERED = frozenset({Fact.CONDITIONS, Fact.NOTED_INDICES})
"""Facts whose use by a rewrite is recorded, so that its result is reused only for nodes with equal facts."""


_tensor = attrgetter("element_type", "shape", "stored_type", "stored_shape")
_stored = attrgetter("is_present", "stored_type", "stored_shape")


def signature(scatter: ScatterNode) -> Hashable | None:
    """Return a key that is equal for nodes with equal `SIGNATURE` facts; None if a node is handled alone."""
    node, facts = scatter.node, scatter.facts
    attributes = exact_key(node.attributes)
    if scatter.lookup.spec is None or attributes is None or scatter.computed_axis is not None:
        return None

    def inferred(value: Value) -> Hashable:
        return facts.shape(value), facts.element_type(value) if facts.propagates else None

    ports = node.inputs
    values = [port.value for port in ports]
    return (
        (node.domain, node.type, node.opset, node.graph.refuses_types),
        attributes,
        tuple(map(_stored, ports)),
        tuple([value and (_tensor(value), value.constant is None and inferred(value)) for value in values]),
        tuple(map(values.index, values)) if len({*values}) < len(values) else (),
        tuple(map(_tensor, node.outputs)),
        scatter.written_axis,
        True if scatter.few_indices else scatter.has_constant_indices and scatter.indices_shape,
    )


class NodeGroups:
    """Groups the nodes of one model by signature; the first node of a group represents it."""

    def __init__(self) -> None:
        self._groups: dict[Hashable, ScatterNode] = {}
        self._by_key: dict[Hashable, ScatterNode | None] = {}

    def representative(self, scatter: ScatterNode) -> ScatterNode | None:
        """Return the first node with the same signature; None if the node has no signature."""
        spec, node, shortcut = scatter.lookup.spec, scatter.node, None
        if spec is not None and scatter.facts.max_elements >= FEW and not scatter.facts.propagates:
            # The file index compares layers by their bytes, which is faster than `signature`; None if it
            # cannot.
            shortcut = node.graph.key_of(node, *_ports(spec.key))
        if shortcut is None:
            return self._of_signature(scatter)
        key, scatter.few_indices = shortcut
        if key not in self._by_key:
            for value in filter(None, [port.value for port in node.inputs]):
                scatter.facts.trust(value)
            self._by_key[key] = self._of_signature(scatter)
        return self._by_key[key]

    def _of_signature(self, scatter: ScatterNode) -> ScatterNode | None:
        key = signature(scatter)
        return None if key is None else self._groups.setdefault(key, scatter)


@cache
def _ports(key: OpKey) -> tuple[int, frozenset[int]]:
    """Return the port of the indices, and the ports whose values belong to the signature: the axis."""
    spec = SPECS[key]
    indices, axis = spec.port_index(Role.INDICES), spec.port_index(Role.AXIS)
    assert indices is not None
    return indices, frozenset() if axis is None else frozenset({axis})
