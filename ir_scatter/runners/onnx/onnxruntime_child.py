"""Runs models on onnxruntime: what happens in its process."""

import ctypes
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype, from_onnx_number
from ir_scatter.core.weights import decode
from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.runners.onnx.answers import OnnxAnswers, shortened
from ir_scatter.runners.onnx.inputs import Expected
from ir_scatter.runners.service import Failure, needs, serve

_PROVIDERS = ["CPUExecutionProvider"]
_FATAL = 4
"""The severity from which on onnxruntime prints."""

_HEAD = re.compile(r"^\[ONNXRuntimeError\] : \d+ : (\w+) : (?:Load model from .*? failed:\s*)?")
_PLACE = re.compile(r"(?:/[^/\s:]+)+:\d+ [^\n]*?\)\s(?=\S)")
_UNSUPPORTED = re.compile(
    r"NOT_IMPLEMENTED|No Op registered|is not a registered function/op|Unsupported model IR version|"
    r"is under development|not currently registered or supported|No opset import"
)
_FOLDER_OF_DATA = "session.model_external_initializers_file_folder_path"


def main() -> None:
    """Serve."""
    runtime = _OnnxRuntime()
    serve(
        {"run": runtime.run, "describe": runtime.describe},
        needs("onnxruntime.InferenceSession", "onnxruntime.OrtValue", "onnxruntime.get_device"),
    )


class _OnnxRuntime(OnnxAnswers):
    """The provider for processors."""

    def describe(self, question: dict[str, Any], _: Sequence[Array]) -> tuple[dict[str, Any], list[Array]]:
        """Say that the package can be imported."""
        import onnxruntime

        return {"status": "ok", "full_name": f"CPU, {onnxruntime.get_device()} build"}, []

    def load(self, path: str) -> Any:
        """Return a session."""
        return _session(path, {})

    def load_changed(self, model: Any, path: str) -> Any:
        """Return a session of a changed model."""
        return _session(model.SerializeToString(), {_FOLDER_OF_DATA: str(Path(path).parent)})

    def inputs(self, session: Any) -> list[Expected]:
        """Return what the model asks for."""
        required = [(one, False) for one in session.get_inputs()]
        optional = [(one, True) for one in session.get_overridable_initializers()]
        return [
            # no dimensions are those of a scalar, or of an input without a shape: it will see for itself
            Expected(one.name, _type(one.type), tuple(one.shape) or None, flag)
            for one, flag in required + optional
        ]

    def output_names(self, session: Any) -> list[str]:
        """Return the names of the outputs."""
        return [output.name for output in session.get_outputs()]

    def infer(self, session: Any, names: Sequence[str], feeds: Mapping[str, Array]) -> list[Array]:
        """Return some outputs."""
        given = (*session.get_inputs(), *session.get_overridable_initializers())
        types = {one.name: one.type for one in given}
        try:
            if any(array.dtype == object for array in feeds.values()):
                # onnxruntime makes no value of its own kind of strings, and no array of bfloat16
                return [np.asarray(found) for found in session.run(list(names), dict(feeds))]
            values = {name: _value(array, types[name]) for name, array in feeds.items()}
            outputs = session.run_with_ort_values(list(names), values)
        except Exception as error:  # whatever the runtime says is the answer
            raise _failure(error) from None
        return [_array(output, name) for name, output in zip(names, outputs, strict=True)]


def _session(model: "str | bytes", entries: Mapping[str, str]) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL
    for name, value in entries.items():
        options.add_session_config_entry(name, value)
    try:
        return onnxruntime.InferenceSession(model, options, providers=_PROVIDERS)
    except Exception as error:
        raise _failure(error) from None


def _type(text: str) -> ElementType | None:
    """Return the element type of "tensor(float)"."""
    name = text.removeprefix("tensor(").removesuffix(")")
    return next((row for row in ELEMENT_TYPES.values() if row.onnx_name == name), None)


def _value(array: Array, type: str) -> Any:
    import onnxruntime

    make = onnxruntime.OrtValue
    number = getattr(_type(type), "onnx_number", 0)
    return make.ortvalue_from_numpy_with_onnx_type(np.ascontiguousarray(array).reshape(array.shape), number)


def _array(value: Any, name: str) -> Array:
    """Return a copy of a tensor: onnxruntime itself has no NumPy type for bfloat16 and the like."""
    if not value.has_value() or not value.is_tensor():
        raise Failure("unsupported", f"output {name} is no tensor")
    row = from_onnx_number(value.element_type())
    if row is not None and row.kind == "string":
        return np.array(value.numpy(), object)
    shape = tuple(value.shape())
    if row is None or dtype(row) is None:
        raise Failure("unsupported", f"output {name} is {value.data_type()}, which NumPy has no type for")
    if 0 in shape:
        return np.empty(shape, dtype(row))
    raw = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    found = decode(memoryview(raw), row, shape)
    if found is None:
        raise Failure("unsupported", f"output {name} is {row.name}, which NumPy has no type for")
    return found


def _failure(error: Exception) -> Failure:
    text = str(error)
    status = "unsupported" if _UNSUPPORTED.search(text) else "refused"
    return Failure(status, shortened(_PLACE.sub("", _HEAD.sub("", text))) or type(error).__name__)
