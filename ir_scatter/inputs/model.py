"""Makes legal inputs for a whole model.

Sizes of dynamic dimensions are drawn so that they fit. The model is run forward on arrays whose elements
are followed; what nodes ask of positions becomes ranges of input elements, which are drawn anew until all
is legal. In the end indices of scatter nodes try what their operators allow.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path

import numpy as np

from ir_scatter.analysis.interpreter import Plan
from ir_scatter.core.arrays import Array
from ir_scatter.core.dataflow import GraphInput
from ir_scatter.core.errors import BadFeed, NoInputs, UsageError
from ir_scatter.core.memory import collector_paused
from ir_scatter.core.model import Model
from ir_scatter.core.shapes import UNKNOWN_DIM, Dim, Shape, agree, is_static, narrow, show
from ir_scatter.core.suggestions import did_you_mean
from ir_scatter.evaluate.model import Program, Sketch, make_sketch
from ir_scatter.inputs.constraints import Conditions
from ir_scatter.inputs.search import Run, Search, Twin, inputs_of
from ir_scatter.inputs.sizes import Sizes
from ir_scatter.ops.lookup import Lookup

PLAIN, EDGE = "plain", "edge"
VALUES = (PLAIN, EDGE)
"""Which numbers inputs may hold that are no indices."""

_FEW = 8
"""Up to so many whole numbers may be a shape."""

_REPEATING = 0
"""The number of a draw that tries repeated indices."""

_RANKS = (2, 1, 3, 4, 0)
"""Ranks that are tried where none is known."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Inputs for a model, and the scatter nodes without reduction whose targets repeat all the same."""

    feeds: dict[str, Array]
    repeated: tuple[str, ...] = ()
    run: Run | None = None
    """What was seen of the model, and of its twin, on these inputs."""
    plain: tuple[str, ...] = ()
    """Inputs that data or updates are computed from, without edge values though these were wanted."""


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
    model: "Model | Sketch | str | Path",
    seed: int = 0,
    input_shapes: Mapping[str, Shape] | None = None,
    values: str = PLAIN,
    constraints: Mapping[str, Conditions] | None = None,
    twin: Twin | None = None,
    *,
    fixed: Mapping[int, Array] | None = None,
    may_repeat: bool = False,
) -> Drawn:
    """Draw legal inputs, and say where targets repeat; see `make_feeds`.

    The constraints are what indices must be beyond what their operators demand, by scatter node; nodes for
    which no such inputs are found are told with those whose targets repeat. Inputs that are to be legal for
    two models are of the types that the twin says. Some inputs are `fixed`, by their numbers. With
    `may_repeat` targets may repeat without a reduction, and do so where that can be drawn.
    """
    if values not in VALUES:
        raise UsageError(f"values is {values!r}, expected {', '.join(VALUES)}")
    program = model if isinstance(model, Sketch) else make_sketch(model)
    inputs = inputs_of(program)
    shapes = _partial_shapes(inputs, input_shapes or {})
    for place, array in (fixed or {}).items():
        shapes[place] = array.shape
    number = _REPEATING if may_repeat else seed
    with collector_paused():
        search, run = _first_legal(
            program, inputs, shapes, seed, twin,
            partial(Search, constraints=constraints or {}, number=number, fixed=fixed, may_repeat=may_repeat),
        )  # fmt: skip
        arrays = run.arrays if values == PLAIN else search.with_edges(run, np.random.default_rng([seed, 1]))
    feeds = {input.names[0]: array for input, array in zip(inputs, arrays, strict=True)}
    plain = tuple(inputs[number].names[0] for number in search.plain)
    return Drawn(feeds, tuple(dict.fromkeys(use.name for use in run.unkept)), run, plain)


def _partial_shapes(inputs: Sequence[GraphInput], given: Mapping[str, Shape]) -> list[Shape]:
    """Return what is known of the shapes of inputs, by the model and by the caller."""
    by_name = {name: number for number, input in enumerate(inputs) for name in reversed(input.names)}
    shapes = [input.shape for input in inputs]
    for name, shape in given.items():
        if name not in by_name:
            known = ", ".join(input.names[0] for input in inputs) or "none"
            guess = did_you_mean(str(name), by_name)
            raise BadFeed(f"the model has no input {name!r}{guess}, expected one of {known}")
        number = by_name[name]
        if not agree(shapes[number], shape):
            raise BadFeed(f"{name} has shape {show(shapes[number])}, which {show(shape)} does not fit")
        shapes[number] = narrow(shapes[number], shape)
    return shapes


def _first_legal(
    model: Sketch,
    inputs: Sequence[GraphInput],
    shapes: Sequence[Shape],
    seed: int,
    twin: Twin | None,
    make: Callable[..., Search],
) -> tuple[Search, Run]:
    """Return the first inputs that every node takes, or else the best; ranks may be tried."""
    unknown = [input.names[0] for input, shape in zip(inputs, shapes, strict=True) if shape is None]
    best: tuple[Search, Run] | None = None
    failed: NoInputs | None = None
    avoided = set() if all(map(is_static, shapes)) else _sizes_in(model.plan)
    if avoided and twin is not None:
        avoided |= _sizes_in(twin.model.plan)
    for tried in _with_ranks(model.plan, inputs, shapes):
        random = np.random.default_rng(seed)
        search = make(model, Sizes(tried, avoided), random, twin=twin)
        try:
            run = search.run()
        except NoInputs as error:
            failed = failed or error
            continue
        if not run.stuck and not (unknown and run.is_blind):
            return search, run
        if best is None or len(run.stuck) < len(best[1].stuck):
            best = search, run
    if best is not None:
        return best
    assert failed is not None
    raise NoInputs(f"the rank of {unknown[0]} is not known; give its shape") if unknown else failed


def _sizes_in(plan: Plan) -> set[int]:
    """Return the sizes of constants, those that they say, and those that are stored at scatter nodes.

    What rests on a stored size by mistake is right for that size.
    """
    found: set[int] = set()
    for step in plan.steps:
        for port in step.node.inputs if isinstance(step.work, Lookup) else ():
            value = port.value
            stored = port.stored_shape or (value.stored_shape if value else None) or ()
            found.update(dim for dim in stored if isinstance(dim, int))
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
    whole = {input.key: shape for input, shape in zip(inputs, shapes, strict=True)}
    unknown = {key for key, shape in whole.items() if shape is None}
    for step in plan.steps if unknown else ():
        for port, key in zip(step.node.inputs, step.inputs, strict=False):
            if key in unknown:
                whole[key] = narrow(whole[key], port.stored_shape)
    for rank in _RANKS if None in whole.values() else _RANKS[:1]:
        yield [(UNKNOWN_DIM,) * rank if shape is None else shape for shape in whole.values()]
