"""The same node with smaller inputs, for the proof of a node whose own would be too large to compute."""

from dataclasses import replace
from typing import NamedTuple

from ir_scatter.convert.engine import Engine, Promises, Rewritten
from ir_scatter.fragment import Fragment, NewNode
from ir_scatter.model import Value
from ir_scatter.ops.spec import Role
from ir_scatter.rewrites.conditions import Condition, Verdict
from ir_scatter.rewrites.refusals import Refusal
from ir_scatter.rewrites.view import View
from ir_scatter.shapes import UNKNOWN_DIM, Shape
from ir_scatter.site import Site

_SMALL = 8
"""Dimensions up to here stay as they are."""


class Smaller(NamedTuple):
    """A node that is like another one, but for its large dimensions, which are unknown.

    Attributes:
        site: the node.
        rewritten: its new form, made by the same rewrites.
        promises: what holds for the other node is promised for this one.
    """

    site: Site
    rewritten: Rewritten
    promises: Promises


def smaller(engine: Engine, site: Site, rewritten: Rewritten, opset: int | None) -> Smaller | None:
    """Rewrite the same node with smaller inputs; None if the same rewrites have no form for it.

    Args:
        engine: has rewritten the node.
        site: the node.
        rewritten: its new form.
        opset: that of the ONNX model that is written.
    """
    view = View(site, engine.promises.conditions, engine.promises.keeps_negative)
    proven = {condition for condition in Condition if view.proof(condition).verdict is Verdict.PROVEN}
    promises = replace(engine.promises, conditions=engine.promises.conditions | proven)
    other = Engine(engine.model, promises)
    found = other.site(_with_unknown_sizes(site).nodes[0])
    assert found is not None
    form = other.along(found, rewritten.way, opset)
    return None if isinstance(form, Refusal) else Smaller(found, form, promises)


def _with_unknown_sizes(site: Site) -> Fragment:
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
    data = site.data
    output = Value("output", data.element_type if data else None, _unknown(site.data_shape))
    assert node.opset is not None
    new = NewNode("scatter", node.domain, node.type, node.opset, tuple(given), node.attributes, output)
    return Fragment(given, [new])


def _unknown(shape: Shape) -> Shape:
    if shape is None:
        return None
    return tuple(dim if isinstance(dim, int) and dim <= _SMALL else UNKNOWN_DIM for dim in shape)
