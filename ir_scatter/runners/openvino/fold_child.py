"""Computes models by OpenVINO's constant folding: what happens in its process."""

from collections.abc import Collection, Mapping, Sequence
from time import perf_counter
from typing import Any

from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.runners.openvino.inputs import (
    input_names,
    input_tensors,
    output_names,
    shapes_by_parameter,
)
from ir_scatter.runners.openvino.messages import sentence, status
from ir_scatter.runners.openvino.models import Models
from ir_scatter.runners.openvino.taps import TappedModel, placed, sizes, tap
from ir_scatter.runners.openvino.tensors import to_array
from ir_scatter.runners.service import Failure, needs, serve
from ir_scatter.runners.tapping import Done, part_of, with_taps

_CONSTANT = "Constant"


def main() -> None:
    """Serve."""
    folding = _Folding()
    serve(
        {"run": folding.run, "describe": folding.describe},
        needs("openvino.Core", "openvino.Tensor", "openvino.passes.ConstantFolding"),
    )


class _Folding:
    """Answers the questions of `ChildRunner`."""

    def __init__(self) -> None:
        self._models = Models()

    def describe(self, question: dict[str, Any], _: Sequence[Array]) -> tuple[dict[str, Any], list[Array]]:
        """Say that the package can be imported."""
        from openvino.passes import ConstantFolding

        return {"status": "ok", "full_name": ConstantFolding.__name__}, []

    def run(self, question: dict[str, Any], arrays: Sequence[Array]) -> tuple[dict[str, Any], list[Array]]:
        """Compute a model, with or without taps."""
        started = perf_counter()
        path = question["model"]
        model = self._models.read(path)
        feeds = dict(zip(question["feeds"], arrays, strict=True))
        tensors = input_tensors(model, feeds, path)
        names = output_names(model)
        taps = [(scope, output) for scope, output, *_ in question["taps"]]
        found = input_names(model, feeds, path)
        read = perf_counter() - started

        def shapes_of(changed: Any) -> list[list[int]]:
            return [_array(source).tolist() for source in _fold(changed.clone(), tensors)]

        def attempt(bodies: bool) -> Done:
            tapped = tap(model, taps, bodies=bodies)
            shapes = shapes_by_parameter(model, found, feeds)
            batch = part_of(len(taps), lambda: sizes(tapped, shapes, shapes_of), question)
            if batch.count < len(taps):
                tapped = tap(model, taps[: batch.count], bodies=bodies)
            repeat = question["repeat"]
            return batch.entered(_compute(tapped.model, tensors, repeat, len(names), feeds, tapped, found))

        def plain() -> Done:
            return _compute(model, tensors, question["repeat"], len(names), feeds, None)

        done = with_taps(len(taps), attempt, plain)
        done.seconds += read
        return done.answer(names)


def _compute(
    model: Any,
    tensors: Sequence[Any],
    repeat: int,
    outputs: int,
    feeds: Mapping[str, Array],
    tapped: TappedModel | None,
    names: Sequence[Collection[str]] = (),
) -> Done:
    done = Done()
    for number in range(repeat):
        started = perf_counter()
        sources = _fold(model.clone(), tensors)
        done.runs.append([_array(source) for source in sources[:outputs]])
        done.seconds = done.seconds or perf_counter() - started
        if tapped is not None and not number:
            done.arrays = [_array(sources[index]) for index in tapped.added]
            done.taps = placed(tapped, names, feeds, len(done.arrays))
            done.arrays += tapped.constants
    return done


def _fold(model: Any, tensors: Sequence[Any]) -> list[Any]:
    """Put constants in the place of the inputs, and return what the outputs come from then."""
    from openvino.op import Constant
    from openvino.passes import ConstantFolding, Manager

    try:
        for parameter, tensor in zip(model.get_parameters(), tensors, strict=True):
            constant = Constant(tensor).output(0)
            for target in parameter.output(0).get_target_inputs():
                target.replace_source_output(constant)
        manager = Manager()
        manager.register_pass(ConstantFolding())
        is_changed = True
        while is_changed:
            model.validate_nodes_and_infer_types()
            manager.run_passes(model)
            is_changed = _inline_branches(model)
    except Exception as error:  # whatever the runtime says is the answer
        raise Failure(status(error), sentence(error)) from None
    return [result.input_value(0).get_node() for result in model.get_results()]


def _inline_branches(model: Any) -> bool:
    """Put the branch that is taken in the place of each If, which the pass does not do."""
    chosen = [
        (node, condition.get_data().item())
        for node in model.get_ordered_ops()
        if hasattr(node, "get_then_body")
        and (condition := node.input_value(0).get_node()).get_type_name() == _CONSTANT
    ]
    for node, truth in chosen:
        number = 0 if truth else 1
        body = (node.get_then_body() if truth else node.get_else_body()).clone()
        for description in node.get_input_descriptions(number):
            parameter = body.get_parameters()[description.body_parameter_index]
            for target in parameter.output(0).get_target_inputs():
                target.replace_source_output(node.input_value(description.input_index))
        for description in node.get_output_descriptions(number):
            source = body.get_results()[description.body_value_index].input_value(0)
            for target in node.output(description.output_index).get_target_inputs():
                target.replace_source_output(source)
    return bool(chosen)


def _array(node: Any) -> Array:
    if node.get_type_name() != _CONSTANT:
        culprit = _first_unfolded(node)
        message = f"{culprit.get_type_name()} {culprit.get_friendly_name()} is not folded"
        raise Failure("unsupported", message)
    return to_array(node.get_tensor_view())


def _first_unfolded(node: Any) -> Any:
    """Return a node that was not folded although all of its inputs were."""
    while True:
        sources = (value.get_node() for value in node.input_values())
        deeper = next((source for source in sources if source.get_type_name() != _CONSTANT), None)
        if deeper is None or deeper.get_type_name() == "Parameter":
            return node
        node = deeper
