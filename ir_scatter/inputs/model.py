"""Generates legal inputs for a whole model.

1. Sizes of dynamic dimensions are chosen so that shapes fit.
2. The model is run on arrays whose elements are traced. The constraints that nodes put on positions become
   ranges of input elements.
3. These elements are drawn again until all constraints hold.
4. Indices of scatter nodes get special values that their operators allow, such as negative or repeated ones.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from ir_scatter.core.value_ranges import ValueRange
from ir_scatter.evaluate.model import Program, Sketch, make_sketch
from ir_scatter.inputs.constraints import Conditions
from ir_scatter.inputs.numbers import check_range
from ir_scatter.inputs.roles import roles_of
from ir_scatter.inputs.search import Run, Search, Twin, inputs_of
from ir_scatter.inputs.sizes import Sizes
from ir_scatter.ops.lookup import Lookup

PLAIN, EDGE = "plain", "edge"
VALUES = (PLAIN, EDGE)
"""The kinds of numbers for inputs other than indices: ordinary ones, or edge values such as infinity."""

_LARGEST_SHAPE = 8
"""Maximum integers in a constant that may be a shape."""

_REPEATING_DRAW = 0
"""The number of a draw in which repeated indices are tried; see `solver`."""

_RANKS = (2, 1, 3, 4, 0)
"""Ranks to try for inputs of unknown rank, in this order."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Generated inputs of a model.

    Attributes:
        feeds: the inputs by name.
        repeated: scatter nodes whose indices repeat although they have no reduction.
    """

    feeds: dict[str, Array]
    repeated: tuple[str, ...] = ()
    run: Run | None = None
    """The trace of the model (and its twin, a second model for the same inputs) on these inputs."""
    plain: tuple[str, ...] = ()
    """Inputs that reach data or updates of a scatter node, but could not get the requested edge values."""


def make_feeds(
    model: "Model | Program | str | Path",
    seed: int = 0,
    input_shapes: Mapping[str, Shape] | None = None,
    values: str = PLAIN,
) -> dict[str, Array]:
    """Draw legal inputs for a model: the same ones for the same seed.

    All indices and positions of all nodes are in range. The targets of scatter nodes without reduction
    differ, if such values are found. Three draws with consecutive seeds contain a negative index, index 0,
    the last index, and with a reduction a repeated one, where the operator allows it.

    Other numbers are drawn as follows:

    - Inputs that specify sizes get declared or small sizes; trip counts are small.
    - Dynamic dimensions get small sizes that fit each other.
    - Integers are between -8 and 8; floating-point numbers are multiples of 1/8 in that range.
    - Masks get zeros and ones; inputs of operators such as a square root get positive numbers.
    - The sizes of pictures are multiples of all strides (`inputs/roles.py`).
    - Inputs of an ONNX model with an initializer are omitted.

    The model may contain operators that NumPy does not compute, and it may break rules. The outputs of such
    nodes are unknown; the inputs are then legal as far as the other nodes show. A model from `prepare` is run
    completely.

    Args:
        model: a model, or the result of `prepare`.
        seed: seed of the random numbers.
        input_shapes: shapes of inputs by any of their names, maybe partial.
        values: "plain", or "edge" for numbers such as infinities and limits of types. Edge values go to
            inputs that reach data or updates of a scatter node, but no positions, sizes or conditions.

    Raises:
        UnreadableModel: the model cannot be read.
        UsageError: `values` is another word.
        BadFeed: `input_shapes` names an unknown input, or contradicts the model.
        NoInputs: no legal inputs were found; the message says why.
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
    input_ranges: Mapping[str, ValueRange] | None = None,
) -> Drawn:
    """Draw legal inputs and report repeated targets; see `make_feeds`.

    Args:
        model: see `make_feeds`.
        seed: see `make_feeds`.
        input_shapes: see `make_feeds`.
        values: see `make_feeds`.
        constraints: further conditions on indices, by scope of the scatter node. Nodes for which they
            cannot be satisfied are reported with those whose targets repeat.
        twin: another model for which the inputs must be legal, too; it determines their types.
        fixed: inputs with given arrays, by number.
        may_repeat: whether targets may repeat without a reduction; if so, some do where possible.
        input_ranges: the lowest and the highest number of inputs, by any of their names; constraints of the
            model narrow them further.
    """
    if values not in VALUES:
        raise UsageError(f"values is {values!r}, expected {', '.join(VALUES)}")
    program = model if isinstance(model, Sketch) else make_sketch(model)
    inputs = inputs_of(program)
    shapes = _partial_shapes(inputs, input_shapes or {})
    ranges = ranges_by_number(inputs, input_ranges or {})
    for place, array in (fixed or {}).items():
        shapes[place] = array.shape
    number = _REPEATING_DRAW if may_repeat else seed
    with collector_paused():
        search, run = _first_legal(
            program, inputs, shapes, seed, twin,
            partial(
                Search, constraints=constraints or {}, number=number, fixed=fixed, may_repeat=may_repeat,
                ranges=ranges, roles=roles_of(program.plan, inputs),
            ),
        )  # fmt: skip
        arrays = run.arrays if values == PLAIN else search.with_edges(run, np.random.default_rng([seed, 1]))
    feeds = {input.names[0]: array for input, array in zip(inputs, arrays, strict=True)}
    plain = tuple(inputs[number].names[0] for number in search.plain)
    return Drawn(feeds, tuple(dict.fromkeys(use.name for use in run.violated)), run, plain)


def _partial_shapes(inputs: Sequence[GraphInput], requested: Mapping[str, Shape]) -> list[Shape]:
    """Return the declared shapes of inputs, narrowed to the shapes that the caller requests."""
    shapes = [input.shape for input in inputs]
    numbers = number_by_name(inputs, requested)
    for number, (name, shape) in zip(numbers, requested.items(), strict=True):
        if not agree(shapes[number], shape):
            raise BadFeed(f"{name} has shape {show(shapes[number])}, which {show(shape)} does not fit")
        shapes[number] = narrow(shapes[number], shape)
    return shapes


def number_by_name(inputs: Sequence[GraphInput], requested: Iterable[str]) -> Iterator[int]:
    """Yield the position in `inputs` of each requested name.

    Raises:
        BadFeed: no input has the name.
    """
    by_name = {name: number for number, input in enumerate(inputs) for name in reversed(input.names)}
    for name in requested:
        if name not in by_name:
            names = ", ".join(input.names[0] for input in inputs) or "none"
            guess = did_you_mean(str(name), by_name)
            raise BadFeed(f"the model has no input {name!r}{guess}, expected one of {names}")
        yield by_name[name]


def ranges_by_number(
    inputs: Sequence[GraphInput], requested: Mapping[str, ValueRange]
) -> dict[int, ValueRange]:
    """Return the requested value ranges by position of the input instead of its name.

    Raises:
        BadFeed: there is no such input, or its type can represent no number of the range.
    """
    numbers = number_by_name(inputs, requested)
    ranges = dict[int, ValueRange]()
    for number, (name, ends) in zip(numbers, requested.items(), strict=True):
        type = inputs[number].element_type
        if type is not None:
            check_range(name, type, ends)
        ranges[number] = ends
    return ranges


def _first_legal(
    model: Sketch,
    inputs: Sequence[GraphInput],
    shapes: Sequence[Shape],
    seed: int,
    twin: Twin | None,
    make: "partial[Search]",
) -> tuple[Search, Run]:
    """Return the first search whose run has no failing node, or else the best one.

    Inputs of unknown rank are tried with several ranks.
    """
    unknown = [input.names[0] for input, shape in zip(inputs, shapes, strict=True) if shape is None]
    best: tuple[Search, Run] | None = None
    failed: NoInputs | None = None
    avoided = set() if all(map(is_static, shapes)) else _sizes_in(model.plan)
    if avoided and twin is not None:
        avoided |= _sizes_in(twin.model.plan)
    multiples = make.keywords["roles"].multiples
    for chosen_shapes in _with_ranks(model.plan, inputs, shapes):
        random = np.random.default_rng(seed)
        search = make(model, Sizes(chosen_shapes, avoided, multiples), random, twin=twin)
        try:
            run = search.run()
        except NoInputs as error:
            failed = failed or error
            continue
        if not run.stuck and not (unknown and run.has_unknown_shapes):
            return search, run
        if best is None or len(run.stuck) < len(best[1].stuck):
            best = search, run
    if best is not None:
        return best
    assert failed is not None
    raise NoInputs(f"the rank of {unknown[0]} is not known; give its shape") if unknown else failed


def _sizes_in(plan: Plan) -> set[int]:
    """Return the sizes of constants, numbers in shape-like constants, and declared sizes at scatter nodes.

    Dynamic dimensions get other sizes. With equal sizes, code that confuses two dimensions would seem
    correct.
    """
    sizes: set[int] = set()
    for step in plan.steps:
        for port in step.node.inputs if isinstance(step.work, Lookup) else ():
            value = port.value
            stored = port.stored_shape or (value.stored_shape if value else None) or ()
            sizes.update(dim for dim in stored if isinstance(dim, int))
    for constant in plan.constants.values():
        sizes.update(constant.shape)
        type = constant.element_type
        if 1 < prod(constant.shape) <= _LARGEST_SHAPE and type is not None and type.kind == "signed":
            array = constant.load()
            sizes.update(() if array is None else array.reshape(-1).tolist())
    return sizes


def _with_ranks(
    plan: Plan, inputs: Sequence[GraphInput], shapes: Sequence[Shape]
) -> Iterator[list[tuple[Dim, ...]]]:
    """Yield the input shapes completed with possible ranks.

    A rank that some node declares for its input is used; without one, each of `_RANKS`.
    """
    known_shapes = {input.key: shape for input, shape in zip(inputs, shapes, strict=True)}
    unknown = {key for key, shape in known_shapes.items() if shape is None}
    for step in plan.steps if unknown else ():
        for port, key in zip(step.node.inputs, step.inputs, strict=False):
            if key in unknown:
                known_shapes[key] = narrow(known_shapes[key], port.stored_shape)
    for rank in _RANKS if None in known_shapes.values() else _RANKS[:1]:
        yield [(UNKNOWN_DIM,) * rank if shape is None else shape for shape in known_shapes.values()]
