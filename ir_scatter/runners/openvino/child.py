"""Runs models on OpenVINO's devices: what happens in the process of that runtime."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.runners.openvino.facts import node_facts
from ir_scatter.runners.openvino.inputs import input_tensors, output_names
from ir_scatter.runners.openvino.models import Models
from ir_scatter.runners.openvino.tapping import Question, prepare, run_tapped
from ir_scatter.runners.service import needs, serve

_PROPERTIES = {
    "full_name": "FULL_DEVICE_NAME",
    "capabilities": "OPTIMIZATION_CAPABILITIES",
    "default_precision": "INFERENCE_PRECISION_HINT",
}


def main() -> None:
    """Serve."""
    device = _Device()
    serve(
        {"run": device.run, "describe": device.describe, "prepare": device.prepare},
        needs("openvino.Core", "openvino.Tensor", "openvino.opset8"),
    )


class _Device:
    """Answers the questions of `ChildRunner`."""

    def __init__(self) -> None:
        self._models = Models()

    def describe(self, question: dict[str, Any], _: Sequence[Array]) -> tuple[dict[str, Any], list[Array]]:
        """Compile the smallest model, and say what the device is."""
        device = question["device"]
        self._models.start(_smallest(), "smallest", device, "default", profile=False)
        answer: dict[str, Any] = {"status": "ok"}
        for word, property in _PROPERTIES.items():
            try:
                value = self._models.core.get_property(device, property)
            except Exception:  # AUTO, HETERO and the like are no devices
                continue
            is_list = isinstance(value, list | tuple | set)
            answer[word] = sorted(map(str, value)) if is_list else _word(value)
        return answer, []

    def prepare(self, question: dict[str, Any], _: Sequence[Array]) -> tuple[dict[str, Any], list[Array]]:
        """Read and compile a model that will be run."""
        started = perf_counter()
        prepare(self._models, question)
        return {"status": "ok", "seconds": perf_counter() - started}, []

    def run(self, question: dict[str, Any], arrays: Sequence[Array]) -> tuple[dict[str, Any], list[Array]]:
        """Run a model, with or without taps."""
        started = perf_counter()
        path = question["model"]
        model = self._models.read(path)
        feeds = dict(zip(question["feeds"], arrays, strict=True))
        tensors = input_tensors(model, feeds, path)
        names = output_names(model)
        read = perf_counter() - started
        done = run_tapped(self._models, Question(question, model, feeds, tensors, len(names)))
        done.seconds += read
        answer, found = done.answer(names)
        if question["profile"]:
            answer["facts"] = node_facts(*done.ran)
        return answer, found


def _word(value: Any) -> str:
    return str(value.to_string()) if hasattr(value, "to_string") else str(value)


def _smallest() -> Any:
    import openvino
    from openvino import opset8

    parameter = opset8.parameter([1], openvino.Type.f32)
    return openvino.Model([opset8.result(opset8.relu(parameter))], [parameter])
