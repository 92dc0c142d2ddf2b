"""The node itself as a fragment, which rewrites begin with."""

from collections.abc import Sequence
from functools import partial

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.fragment import Fragment, NewNode
from ir_scatter.core.model import Input, Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Shape, agree, narrow
from ir_scatter.ops.spec import Layout, Role

_SMALL = 8
"""Dimensions up to here are no large ones."""


def start(site: ScatterNode) -> Fragment:
    """Return the node itself as a fragment, its inputs with the best that is known of them."""
    node, given = site.node, list[Value | None]()
    known: dict[int, Value] = {}
    shapes = _shapes(site)
    for number, port in enumerate(node.inputs):
        value = port.value
        if value is not None and id(value) not in known:
            known[id(value)] = _best_known(value, port, shapes.get(number, site.facts.shape(value)))
        given.append(None if value is None else known[id(value)])
    return _fragment(site, given, site.data_shape)


def _shapes(site: ScatterNode) -> dict[int, Shape]:
    """Return the shapes of inputs by number; those of elements tell of each other."""
    operands = {role: site.operand(role) for role in (Role.DATA, Role.INDICES, Role.UPDATES)}
    found = {role: one.shape for role, one in operands.items() if one is not None}
    if site.spec.layout is Layout.ELEMENTS:
        indices, updates = found.get(Role.INDICES), found.get(Role.UPDATES)
        if agree(indices, updates):
            found[Role.INDICES] = found[Role.UPDATES] = narrow(indices, updates)
        ranks = [len(shape) for shape in found.values() if shape is not None]
        if ranks:
            found = {
                role: (UNKNOWN_DIM,) * ranks[0] if dims is None else dims for role, dims in found.items()
            }
    return {one.index: found[role] for role, one in operands.items() if one is not None}


def _best_known(value: Value, port: Input, shape: Shape) -> Value:
    return Value(
        value.name,
        value.element_type or port.stored_type,
        shape,
        partial(getattr, value, "producer"),
        value.output,
        value.constant,
        producer_type=value.producer_type,
        is_input=value.is_input,
    )


def with_unknown_sizes(site: ScatterNode) -> Fragment:
    """Return a node like another one whose inputs are no constants, and whose sizes are small or unknown."""
    node, given = site.node, list[Value | None]()
    shapes = {Role.DATA: site.data_shape, Role.INDICES: site.indices_shape}
    shapes[Role.UPDATES] = site.updates.shape if site.updates else None
    known: dict[int, Value] = {}
    for port, input in zip(site.spec.ports, node.inputs, strict=False):
        value = input.value
        if value is not None and id(value) not in known:
            shape = shapes.get(port.role)
            is_kept = port.role not in shapes
            known[id(value)] = value if is_kept else Value("input", value.element_type, _unknown(shape))
        given.append(None if value is None else known[id(value)])
    return _fragment(site, given, _unknown(site.data_shape))


def _fragment(site: ScatterNode, given: Sequence[Value | None], shape: Shape) -> Fragment:
    """Return the node with these inputs; its output has this shape."""
    node, data = site.node, site.data
    output = Value("output", data.element_type if data else None, shape)
    assert node.opset is not None
    new = NewNode("scatter", node.domain, node.type, node.opset, tuple(given), node.attributes, output)
    return Fragment(given, [new])


def _unknown(shape: Shape) -> Shape:
    if shape is None:
        return None
    return tuple(dim if isinstance(dim, int) and dim <= _SMALL else UNKNOWN_DIM for dim in shape)
