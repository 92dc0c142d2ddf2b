"""Computes models by OpenVINO's constant folding: what happens in its process."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ir_scatter.core.arrays import Array
from ir_scatter.core.process import Failure, require
from ir_scatter.runners.engine import Loaded, run
from ir_scatter.runners.openvino.child import OpenVinoEngine
from ir_scatter.runners.openvino.inputs import to_array
from ir_scatter.runners.openvino.messages import failure

_CONSTANT = "Constant"


def handlers() -> dict[str, Callable[..., Any]]:
    """Return what answers questions."""
    require("openvino.Core", "openvino.Tensor", "openvino.passes.ConstantFolding")
    return {"run": partial(run, FoldEngine), "describe": lambda device: {"full_name": "ConstantFolding"}}


class FoldEngine(OpenVinoEngine):
    """What the pass computes when constants stand in the place of the inputs."""

    def compute(self, model: Any) -> list[Array]:
        return [_array(source) for source in self._fold(model)]

    def infer(self, loaded: Loaded, keys: Sequence[str]) -> list[Array]:
        sources = self._fold(loaded.model.clone())
        return [_array(sources[number]) for number in (*range(len(self.names)), *map(int, keys))]

    def _fold(self, model: Any) -> list[Any]:
        """Return what the outputs come from when everything is folded."""
        from openvino.op import Constant
        from openvino.passes import ConstantFolding, Manager

        try:
            for parameter, tensor in zip(model.get_parameters(), self.tensors, strict=True):
                _replace(parameter.output(0), Constant(tensor).output(0))
            manager = Manager()
            manager.register_pass(ConstantFolding())
            is_changed = True
            while is_changed:
                model.validate_nodes_and_infer_types()
                manager.run_passes(model)
                is_changed = _inline_branches(model)
        except Exception as error:  # whatever the runtime says is the answer
            raise failure(error) from None
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
            _replace(parameter.output(0), node.input_value(description.input_index))
        for description in node.get_output_descriptions(number):
            source = body.get_results()[description.body_value_index].input_value(0)
            _replace(node.output(description.output_index), source)
    return bool(chosen)


def _replace(output: Any, source: Any) -> None:
    for target in output.get_target_inputs():
        target.replace_source_output(source)


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
