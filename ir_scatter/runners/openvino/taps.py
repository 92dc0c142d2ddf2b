"""Makes what goes in and out of nodes outputs of the model: with OpenVINO's own API, in its process."""

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.runners.openvino.places import Owner, Place, Places
from ir_scatter.runners.openvino.tensors import to_array, type_name
from ir_scatter.runners.service import Failure
from ir_scatter.runners.tapping import INSIDE


class CannotTap(Exception):
    """Something inside a body cannot be made an output; the message says why."""


@dataclass(slots=True, eq=False)
class TappedModel:
    """A model with more outputs, and where to find what was asked for.

    Attributes:
        model: a changed copy.
        taps: one for each tap: {"problem"} or {"inputs", "output", "markers"}, much as
            `tapped.decode` takes them, arrays by their number among those that were added.
        added: the numbers of the model's outputs that were added, or were there already.
        constants: arrays that the model holds.
    """

    model: Any
    taps: list[dict[str, Any]] = field(default_factory=list)
    added: list[int] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)


def tap(model: Any, taps: Sequence[tuple[str, str]], *, bodies: bool) -> TappedModel:
    """Return a copy of a model with outputs for what goes in and out of nodes.

    Args:
        model: of OpenVINO; it stays as it is.
        taps: scope and name of the first output of each node.
        bodies: whether to tap inside bodies as well.
    """
    return _Tapper(model.clone()).tap(taps, bodies=bodies)


class _Tapper:
    """Adds outputs to one model."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._places = Places(model)
        self._outputs: dict[tuple[str, int], int] = {}
        self._added: list[Any] = []
        self._exported: dict[tuple[Any, ...], Any] = {}
        self._result = TappedModel(model)
        self._there = {
            _key(result.input_value(0)): number for number, result in enumerate(model.get_results())
        }

    def tap(self, taps: Sequence[tuple[str, str]], *, bodies: bool) -> TappedModel:
        """Add outputs for every tap."""
        for scope, output in taps:
            place = self._places.find(scope, output)
            if isinstance(place, str):
                self._result.taps.append({"problem": place})
            elif place.owners and not bodies:
                self._result.taps.append({"problem": INSIDE})
            else:
                self._result.taps.append(self._tap(place))
        if self._added:
            self._model.add_outputs(self._added)
        self._model.validate_nodes_and_infer_types()
        return self._result

    def _tap(self, place: Place) -> dict[str, Any]:
        try:
            inputs = [self._value(place, source) for source in place.node.input_values()]
            output = self._value(place, place.node.output(0))
            markers = [
                [self._main(self._marker(place.owners[: depth + 1])), _loops(place.owners[:depth])]
                for depth, owner in enumerate(place.owners)
                if owner.kind != "body"
            ]
        except CannotTap as problem:
            return {"problem": str(problem)}
        return {"inputs": inputs, "output": output, "markers": markers}

    def _value(self, place: Place, source: Any) -> list[Any]:
        """Return where the array will be found; constants and feeds need no output."""
        node = source.get_node()
        if node.get_type_name() == "Constant":
            try:
                self._result.constants.append(to_array(node.get_tensor_view(), is_constant=True))
            except Failure as failure:
                raise CannotTap(failure.message) from None
            return ["constant", len(self._result.constants) - 1]
        if node.get_type_name() == "Parameter" and not place.owners:
            return ["feed", self._model.get_parameter_index(node)]
        return ["each", self._main(self._export(place.owners, source)), _loops(place.owners)]

    def _main(self, output: Any) -> int:
        """Make an output of a node of the main graph one of the model."""
        key = _key(output)
        if key not in self._outputs:
            number = self._there.get(key)
            if number is None:
                number = len(self._model.get_results()) + len(self._added)
                self._added.append(output)
            self._outputs[key] = len(self._result.added)
            self._result.added.append(number)
        return self._outputs[key]

    def _marker(self, owners: tuple[Owner, ...]) -> Any:
        """Return an output that is 1 where a branch was taken and 0 where it was not."""
        key = ("marker", *_keys(owners))
        if key not in self._exported:
            branch = owners[-1]
            taken, other = (_constant(np.full([1], value, np.int32)) for value in (1, 0))
            self._exported[key] = self._out_of_branch(owners[:-1], branch, taken, other)
        return self._exported[key]

    def _export(self, owners: tuple[Owner, ...], source: Any) -> Any:
        """Lead a value of a body out to the main graph."""
        if not owners:
            return source
        key = (*_key(source), *_keys(owners))
        if key not in self._exported:
            owner, outside = owners[-1], owners[:-1]
            if owner.kind == "body":
                outer = _out_of_loop(owner, source)
                self._exported[key] = self._export(outside, outer)
            else:
                other = _nothing_like(source, is_in_loop=_loops(outside) > 0)
                self._exported[key] = self._out_of_branch(outside, owner, source, other)
        return self._exported[key]

    def _out_of_branch(self, outside: tuple[Owner, ...], branch: Owner, value: Any, other: Any) -> Any:
        """Lead a value out of an If; `other` is what comes if the other branch is taken."""
        node = branch.node
        bodies = {"then_body": node.get_then_body(), "else_body": node.get_else_body()}
        results = {}
        for kind, body in bodies.items():
            results[kind] = _result(value if kind == branch.kind else other)
            body.add_results([results[kind]])
        outer = node.set_output(results["then_body"], results["else_body"])
        return self._export(outside, outer)


def _out_of_loop(owner: Owner, source: Any) -> Any:
    """Return what stacks the values of all iterations on a new first axis."""
    from openvino import opset8

    result = _result(opset8.unsqueeze(source, _constant(np.zeros([1], np.int64))).output(0))
    owner.body.add_results([result])
    return owner.node.get_concatenated_slices(result.output(0), 0, 1, 1, -1, 0)


def _nothing_like(source: Any, *, is_in_loop: bool) -> Any:
    """Return a constant of the type and rank of a value; of its shape too if a loop stacks it."""
    import openvino

    shape = source.get_partial_shape()
    if is_in_loop and shape.is_dynamic:
        raise CannotTap(f"in a branch inside a loop, and the shape {shape} is not static")
    if is_in_loop:
        dims = [dim.get_length() for dim in shape]
    else:
        dims = [0] if shape.rank.is_dynamic else [0] * len(shape)
    tensor = openvino.Tensor(source.get_element_type(), openvino.Shape(dims))
    if tensor.get_byte_size() and type_name(source.get_element_type()) != "string":
        tensor.data.reshape(-1).view(np.uint8)[:] = 0
    return openvino.op.Constant(tensor).output(0)


def _constant(array: Any) -> Any:
    from openvino import opset8

    return opset8.constant(array).output(0)


def _result(source: Any) -> Any:
    from openvino import opset8

    return opset8.result(source)


def _loops(owners: Sequence[Owner]) -> int:
    return sum(owner.kind == "body" for owner in owners)


def _key(output: Any) -> tuple[str, int]:
    """Return what tells an output from the others of its model."""
    return output.get_node().get_name(), output.get_index()


def _keys(owners: Sequence[Owner]) -> list[str]:
    return [f"{owner.node.get_name()}:{owner.kind}" for owner in owners]


def placed(
    tapped: TappedModel, names: Sequence[Collection[str]], feeds: Collection[str], added: int
) -> list[dict[str, Any]]:
    """Return the taps as `tapped.decode` takes them.

    Args:
        tapped: the changed model.
        names: every name of each Parameter.
        feeds: the names that the caller used for the inputs.
        added: how many outputs there are; the constants come after them.
    """

    def place(value: list[Any]) -> list[Any]:
        kind, number = value[:2]
        if kind == "feed":
            return ["feed", next(name for name in feeds if name in names[number])]
        return ["each", number + added, 0] if kind == "constant" else value

    return [
        dict(one) if "problem" in one else {"runs": [{**one, "inputs": list(map(place, one["inputs"]))}]}
        for one in tapped.taps
    ]


def sizes(
    tapped: TappedModel,
    shapes: Mapping[str, Sequence[int]],
    measure: Callable[[Any], Sequence[Sequence[int]]],
) -> list[dict[int, int]] | None:
    """Return of each tap the bytes of the values that are given out, by their numbers.

    Args:
        tapped: the model.
        shapes: of the feeds, by the name of the Parameter.
        measure: runs a model whose outputs are shapes.

    Returns:
        None if they cannot be known, as where a loop stacks values.
    """
    import openvino

    model = tapped.model
    if any(model.output(number).get_partial_shape().is_dynamic for number in tapped.added):
        model = model.clone()
        with contextlib.suppress(Exception):  # then the shapes that are known must do
            model.reshape({name: openvino.PartialShape(list(shape)) for name, shape in shapes.items()})
    values_of = [
        [value for value in (*one.get("inputs", ()), one.get("output")) if value and value[0] == "each"]
        for one in tapped.taps
    ]
    loops = {number: depth for values in values_of for _, number, depth in values}
    outputs = {number: model.output(tapped.added[number]) for number in loops}
    open_ones = [number for number, output in outputs.items() if output.get_partial_shape().is_dynamic]
    if any(loops[number] for number in open_ones):
        return None
    known = {
        number: [dim.get_length() for dim in output.get_partial_shape()]
        for number, output in outputs.items()
        if number not in open_ones
    }
    if open_ones:
        found = measure(_shapes_of(model, [tapped.added[number] for number in open_ones]))
        known |= {number: list(map(int, shape)) for number, shape in zip(open_ones, found, strict=True)}
    bytes_of = {number: _bytes(outputs[number], shape) for number, shape in known.items()}
    return [{number: bytes_of[number] for _, number, _ in values} for values in values_of]


def _shapes_of(model: Any, numbers: Sequence[int]) -> Any:
    """Return a model that gives the shapes of some outputs of another, and nothing else."""
    import openvino
    from openvino import opset8

    model = model.clone()
    results = model.get_results()
    shapes = [_result(opset8.shape_of(results[number].input_value(0)).output(0)) for number in numbers]
    return openvino.Model(shapes, model.get_parameters())


def _bytes(output: Any, shape: Sequence[int]) -> int:
    row = ELEMENT_TYPES.get(type_name(output.get_element_type()))
    return 0 if row is None else row.byte_size(prod(shape))
