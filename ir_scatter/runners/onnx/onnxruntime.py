"""The child process of onnxruntime."""

import ctypes
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype, from_dtype, from_onnx_number
from ir_scatter.core.process import Failure, require, shortened
from ir_scatter.core.shapes import Bounds, Shape
from ir_scatter.core.tensors import decode
from ir_scatter.formats.onnx.message_text import is_text_file
from ir_scatter.runners.engine import ModelInput, as_failures, run, stream
from ir_scatter.runners.onnx.child import OnnxEngine, message_of
from ir_scatter.runners.onnx.runner import NOT_FROM_NUMPY

_PROVIDERS = ["CPUExecutionProvider"]
_FATAL = 4
"""The minimum severity of messages that onnxruntime prints: only fatal errors."""

_HEAD = re.compile(r"^\[ONNXRuntimeError\] : \d+ : (\w+) : (?:Load model from .*? failed:\s*)?")
_PLACE = re.compile(r"(?:/[^/\s:]+)+:\d+ [^\n]*?\)\s(?=\S)")
_UNSUPPORTED = re.compile(
    r"NOT_IMPLEMENTED|No Op registered|is not a registered function/op|Unsupported model IR version|"
    r"is under development|not currently registered or supported|No opset import"
)
_NODE = re.compile(
    r"^Non-zero status code returned while running (\S+) node\. Name:'([^']*)' Status Message: "
)
_FOLDER_OF_DATA = "session.model_external_initializers_file_folder_path"


def handlers() -> dict[str, Callable[..., Any]]:
    require("onnxruntime.InferenceSession", "onnxruntime.OrtValue", "onnxruntime.get_device")
    import onnxruntime

    description = {"full_name": f"CPU, {onnxruntime.get_device()} build"}
    with suppress(AttributeError):  # older releases lack this function
        description["driver"] = onnxruntime.get_build_info().removeprefix("ORT Build Info: ")
    return {
        "run": partial(run, _OnnxRuntime),
        "stream": partial(stream, _OnnxRuntime),
        "describe": lambda device: description,
    }


class _OnnxRuntime(OnnxEngine):
    """An engine for onnxruntime with its CPU provider."""

    def load(self, model: Any) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = _FATAL
        options.intra_op_num_threads = self.request.threads
        source = self.path
        if model is None and is_text_file(self.path):
            model = message_of(self.path)
        if model is not None:
            source = model.SerializeToString()
            options.add_session_config_entry(_FOLDER_OF_DATA, str(Path(self.path).parent))
        with as_failures(_failure):
            return onnxruntime.InferenceSession(source, options, providers=_PROVIDERS)

    def ends(self, session: Any) -> tuple[list[ModelInput], list[str]]:
        required = [(input, False) for input in session.get_inputs()]
        optional = [(input, True) for input in session.get_overridable_initializers()]
        inputs = [
            ModelInput((input.name,), _type(input.type), _shape(input), flag)
            for input, flag in required + optional
        ]
        return inputs, [output.name for output in session.get_outputs()]

    def compute(self, session: Any, names: Sequence[str]) -> list[Array]:
        with as_failures(_failure, at_inference=True):
            if any(array.dtype == object for array in self.feeds.values()):
                # OrtValue does not support strings, and `run` cannot return bfloat16
                return [np.asarray(output) for output in session.run(list(names), dict(self.feeds))]
            values = {name: _value(array) for name, array in self.feeds.items()}
            outputs = session.run_with_ort_values(list(names), values)
        return [_array(output, name) for name, output in zip(names, outputs, strict=True)]


def _type(text: str) -> str:
    """Return our name of an onnxruntime type: "tensor(float)" -> "f32"."""
    name = text.removeprefix("tensor(").removesuffix(")")
    return next((row.name for row in ELEMENT_TYPES.values() if row.onnx_name == name), text)


def _shape(input: Any) -> Shape:
    """Return the shape of an input. Without dimensions it is unknown: a scalar or a missing shape."""
    if not input.shape:
        return None
    return tuple(dim if isinstance(dim, int) else Bounds(symbol=dim or None) for dim in input.shape)


def _value(array: Array) -> Any:
    import onnxruntime

    row = from_dtype(array.dtype)
    assert row is not None
    array = np.ascontiguousarray(array).reshape(array.shape)
    make = getattr(onnxruntime.OrtValue, "ortvalue_from_numpy_with_onnx_type", None)
    if make is None and array.dtype.isbuiltin != 1:
        raise Failure("unsupported", f"this release of onnxruntime accepts no {row.name} {NOT_FROM_NUMPY}")
    return make(array, row.onnx_number) if make else onnxruntime.OrtValue.ortvalue_from_numpy(array)


def _array(value: Any, name: str) -> Array:
    """Return a copy of a tensor. Element types that NumPy lacks, such as bfloat16, need a conversion."""
    if not value.has_value() or not value.is_tensor():
        raise Failure("unsupported", f"output {name} is not a tensor")
    row = from_onnx_number(value.element_type())
    if row is not None and row.kind == "string":
        return np.array(value.numpy(), object)
    shape = tuple(value.shape())
    if row is None or dtype(row) is None:
        raise Failure("unsupported", f"output {name} is {value.data_type()}, which NumPy has no type for")
    if 0 in shape:
        return np.empty(shape, dtype(row))
    raw = ctypes.string_at(value.data_ptr(), row.byte_size(prod(shape)))
    array = decode(memoryview(raw), row, shape)
    assert array is not None
    return array


def _failure(error: Exception) -> Failure:
    text = str(error)
    status = "unsupported" if _UNSUPPORTED.search(text) else "refused"
    message = _NODE.sub(_node, _PLACE.sub("", _HEAD.sub("", text)))
    return Failure(status, shortened(message) or type(error).__name__)


def _node(match: re.Match[str]) -> str:
    """Return the failing node of an error message as "Reshape Reshape_5: "."""
    return f"{' '.join(filter(None, match.groups()))}: "
