"""Groups of nodes that nothing tells apart but their names and numbers: networks repeat themselves.

What is found out about one node of a group holds for all of it, if whoever finds it out declares to read
nothing else than what they have in common. Without the groups the same is found.
"""

from collections.abc import Hashable
from enum import StrEnum
from functools import cache
from operator import attrgetter

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.model import OpKey, Value, exactly
from ir_scatter.core.tensors import FEW
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import Role


class Fact(StrEnum):
    """Something that can be known of a scatter node.

    A rule or a rewrite declares all that it reads. Nodes that are the same in all of it are handled
    once; whoever reads a fact that no group of nodes shares is asked about each node.
    """

    OPERATOR = "operator"
    """Domain, type and opset, and the row of the table that applies."""
    ATTRIBUTES = "attributes"
    """The attributes, written or by default, and so the reduction."""
    AXIS = "axis"
    """The axis if it is constant; of one that is computed between which numbers it lies."""
    INPUTS = "inputs"
    """How many inputs and outputs there are, which of them are left out, open or the same."""
    SHAPES = "shapes"
    """Ranks and shapes of inputs and outputs, as far as they are known."""
    TYPES = "types"
    """Element types of inputs and outputs."""
    STORED = "stored"
    """Shapes and types that the file stores at inputs and outputs, and whether wrong ones are refused."""
    CONSTANCY = "constancy"
    """Whether the indices are constant in effect."""

    INDEX_FAULTS = "index-faults"
    """Constant indices, and where they come from, if one of them is out of range, negative, or names a
    target again, and whether updates of one target are equal then; computed indices that are certainly out
    of range, and whether the node is computed; of other indices only whether updates are equal, and only if
    there are more of them than targets."""
    UNREAD_INDICES = "unread-indices"
    """The constant that the indices come from, if it is too large to be read; nothing of others."""

    CONDITIONS = "conditions"
    """What is proven of the indices, by condition (rewrites: `View.proof`, which remembers who asked)."""
    NOTED_INDICES = "noted-indices"
    """The numbers of constant indices (rewrites: `View.index_numbers`, which notes that what is made
    of them is right for no others)."""
    INDICES = "indices"
    """The numbers of the indices, whatever they are."""
    VALUES = "values"
    """The numbers of data and updates."""
    PRODUCERS = "producers"
    """What stands in front of the inputs and around the node."""
    NAMES = "names"
    """Names and places of the node and of its inputs."""


EVERYTHING = frozenset(Fact)
"""What is read by whoever declares nothing."""

SIGNATURE = frozenset(
    {
        Fact.OPERATOR, Fact.ATTRIBUTES, Fact.AXIS, Fact.INPUTS, Fact.SHAPES, Fact.TYPES, Fact.STORED,
        Fact.CONSTANCY,
    }
)  # fmt: skip
"""What nodes of one signature have in common."""

FAULTS = frozenset({Fact.INDEX_FAULTS, Fact.UNREAD_INDICES})
"""What a node has nothing of unless it says so (`ScatterNode.has_faults`)."""

REMEMBERED = frozenset({Fact.CONDITIONS, Fact.NOTED_INDICES})
"""What is written down when a rewrite asks for it."""


_known = attrgetter("element_type", "shape", "stored_type", "stored_shape")
_stored = attrgetter("is_present", "stored_type", "stored_shape")


def signature(scatter: ScatterNode) -> Hashable | None:
    """Return the values of the facts in `SIGNATURE`; None if the node is like no other."""
    node, facts = scatter.node, scatter.facts
    attributes = exactly(node.attributes)
    if scatter.lookup.spec is None or attributes is None or scatter.computed_axis is not None:
        return None

    def known(value: Value) -> Hashable:
        return facts.shape(value), facts.element_type(value) if facts.propagates else None

    ports = node.inputs
    values = [port.value for port in ports]
    return (
        (node.domain, node.type, node.opset, node.graph.refuses_types),
        attributes,
        tuple(map(_stored, ports)),
        tuple([value and (_known(value), value.constant is None and known(value)) for value in values]),
        tuple(map(values.index, values)) if len({*values}) < len(values) else (),
        tuple(map(_known, node.outputs)),
        scatter.written_axis,
        True if scatter.few_indices else scatter.has_constant_indices and scatter.indices_shape,
    )


class NodeGroups:
    """Groups the nodes of one model that have one signature; the first of each stands for it."""

    def __init__(self) -> None:
        self._groups: dict[Hashable, ScatterNode] = {}
        self._by_key: dict[Hashable, ScatterNode | None] = {}

    def representative(self, scatter: ScatterNode) -> ScatterNode | None:
        """Return the first node of the group of a node, None if it is like no other."""
        spec, node, short_cut = scatter.lookup.spec, scatter.node, None
        if spec is not None and scatter.facts.max_elements >= FEW and not scatter.facts.propagates:
            short_cut = node.graph.key_of(node, *_ports(spec.key))
        if short_cut is None:
            return self._of_signature(scatter)
        key, scatter.few_indices = short_cut
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
    """Return the input of the indices, and those whose numbers belong to the signature: the axis."""
    spec = SPECS[key]
    indices, axis = spec.port_index(Role.INDICES), spec.port_index(Role.AXIS)
    assert indices is not None
    return indices, frozenset() if axis is None else frozenset({axis})
