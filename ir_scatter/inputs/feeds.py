"""Makes legal inputs for a whole model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from ir_scatter.analysis.interpreter import Plan
from ir_scatter.core.dataflow import GraphInput
from ir_scatter.core.errors import NoInputs, UsageError
from ir_scatter.core.model import Model, collector_paused
from ir_scatter.core.shapes import UNKNOWN_DIM, Dim, Shape, is_static, narrow
from ir_scatter.evaluate.model import Program, Sketch, make_sketch
from ir_scatter.inputs.edges import edge_feeds
from ir_scatter.inputs.search import Found, Search
from ir_scatter.inputs.sizes import Sizes, partial_shapes
from ir_scatter.inputs.terms import Constraint
from ir_scatter.ops.general_kernels.base import Array

PLAIN, EDGE = "plain", "edge"
VALUES = (PLAIN, EDGE)
"""Which numbers inputs may hold that are no indices."""

_FEW = 8
"""Up to so many whole numbers may be a shape."""

_RANKS = (2, 1, 3, 4, 0)
"""Ranks that are tried where none is known."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Inputs for a model.

    Attributes:
        feeds: arrays by name.
        repeated: the scatter nodes without reduction whose targets repeat all the same.
    """

    feeds: dict[str, Array]
    repeated: tuple[str, ...] = ()


def make_feeds(
    model: "Model | Program | str | Path",
    seed: int = 0,
    input_shapes: Mapping[str, Shape] | None = None,
    values: str = PLAIN,
) -> dict[str, Array]:
    """Draw legal inputs for a model: the same ones for the same seed.

    Every input that indices are made of gets values for which all indices and positions of all nodes
    are in range, and the targets of scatter nodes without reduction differ where there is room and
    such values are found. Indices of scatter nodes try what their operator allows: three draws of
    consecutive seeds hold a negative one, 0, the last one, and with a reduction a repeated one. Inputs
    that say sizes get those that the model has declared, or small ones; trip counts are small. Dynamic
    dimensions become small numbers that fit each other. Other whole numbers are between -8 and 8,
    floating-point numbers multiples of 1/8 in that range. Inputs of an ONNX model that have an
    initializer are left out.

    A model may have operators that NumPy does not compute, and break rules: then what comes out of
    such a node is not known, and inputs are legal as far as can be seen. What `prepare` made is held
    against everything.

    Args:
        model: a model, or what `prepare` made of it.
        seed: for the random numbers.
        input_shapes: shapes of inputs by any of their names; they may be partial.
        values: "plain", or "edge" for infinities, limits of types and other such numbers in the inputs
            that reach data or updates of a scatter node, and no positions, sizes or conditions.

    Raises:
        UnreadableModel: the model cannot be read.
        UsageError: `values` is no such word.
        BadFeed: `input_shapes` names no input, or contradicts the model.
        NoInputs: no such inputs were found; the message says what stood in the way.
    """
    return draw_feeds(model, seed, input_shapes, values).feeds


def draw_feeds(
    model: "Model | Program | str | Path",
    seed: int = 0,
    input_shapes: Mapping[str, Shape] | None = None,
    values: str = PLAIN,
    constraints: Mapping[str, Constraint] | None = None,
) -> Drawn:
    """Draw legal inputs, and say where targets repeat; see `make_feeds`.

    Args:
        model: a model, or what `prepare` made of it.
        seed: for the random numbers.
        input_shapes: shapes of inputs by any of their names.
        values: "plain" or "edge".
        constraints: what indices must be beyond what their operators demand, by scatter node; nodes for
            which no such inputs are found are told with those whose targets repeat.
    """
    if values not in VALUES:
        raise UsageError(f"values is {values!r}, expected {', '.join(VALUES)}")
    known = model if isinstance(model, Program) else make_sketch(model)
    inputs = [input for input in known.inputs if input.default is None]
    shapes = partial_shapes(inputs, input_shapes or {})
    with collector_paused():
        search, found = _search(known, inputs, shapes, seed, constraints)
        found = search.vary(found, np.random.default_rng([seed, 2]), seed)
        arrays = found.arrays
        if values == EDGE:
            arrays = edge_feeds(search, found, np.random.default_rng([seed, 1]))
    feeds = {input.names[0]: array for input, array in zip(inputs, arrays, strict=True)}
    return Drawn(feeds, tuple(dict.fromkeys(use.name for use in found.repeated)))


def _search(
    model: Program | Sketch,
    inputs: Sequence[GraphInput],
    shapes: Sequence[Shape],
    seed: int,
    constraints: Mapping[str, Constraint] | None,
) -> tuple[Search, Found]:
    """Return the first inputs that every node takes, or else the best."""
    unknown = [input.names[0] for input, shape in zip(inputs, shapes, strict=True) if shape is None]
    best: tuple[Search, Found] | None = None
    failed: NoInputs | None = None
    avoided = set() if all(map(is_static, shapes)) else _sizes_in(model.plan)
    for tried in _with_ranks(model.plan, inputs, shapes):
        search = Search(model, inputs, Sizes(tried, avoided), np.random.default_rng(seed), constraints)
        try:
            found = search.run()
        except NoInputs as error:
            failed = failed or error
            continue
        if not found.stuck and not (unknown and found.is_blind):
            return search, found
        if best is None or found.stuck < best[1].stuck:
            best = search, found
    if best is not None:
        return best
    assert failed is not None
    raise NoInputs(f"the rank of {unknown[0]} is not known; give its shape") if unknown else failed


def _sizes_in(plan: Plan) -> set[int]:
    """Return the sizes of constants, and those that they say."""
    found: set[int] = set()
    for constant in plan.constants.values():
        found.update(constant.shape)
        type = constant.element_type
        if 1 < prod(constant.shape) <= _FEW and type is not None and type.kind == "signed":
            array = constant.load()
            found.update(() if array is None else array.reshape(-1).tolist())
    return found


def _with_ranks(
    plan: Plan, inputs: Sequence[GraphInput], shapes: Sequence[Shape]
) -> Iterator[list[tuple[Dim, ...]]]:
    """Yield shapes of known rank: as the nodes that take the inputs have them, or tried one by one."""
    told = {
        input.key: _told(plan, input) for input, shape in zip(inputs, shapes, strict=True) if shape is None
    }
    ranks = _RANKS if any(shape is None for shape in told.values()) else _RANKS[:1]
    for rank in ranks:
        found = []
        for input, shape in zip(inputs, shapes, strict=True):
            known = shape if shape is not None else told[input.key]
            found.append((UNKNOWN_DIM,) * rank if known is None else known)
        yield found


def _told(plan: Plan, input: GraphInput) -> Shape:
    """Return what nodes say of the shape of an input."""
    found: Shape = None
    for step in plan.steps:
        if input.key in step.inputs:
            ports = step.node.inputs
            number = step.inputs.index(input.key)
            stored = ports[number].stored_shape if number < len(ports) else None
            found = stored if found is None else narrow(found, stored)
    return found
