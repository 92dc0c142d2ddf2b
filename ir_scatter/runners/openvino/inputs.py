"""Inputs and outputs of an `openvino.Model`: their names for users, and their tensors."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array, pack
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype, from_dtype
from ir_scatter.core.process import Failure
from ir_scatter.core.shapes import Bounds, Shape, show
from ir_scatter.core.tensors import decode
from ir_scatter.core.words import listed
from ir_scatter.formats import format_of
from ir_scatter.formats.base import ONNX_FORMAT
from ir_scatter.runners.engine import ModelInput, names_of_feeds

_STRING = "string"
_SINK = "/sink_port_0"
"""The suffix of a Result's name that the ONNX frontend appends to the name of the output."""


def feeds_by_parameter(model: Any, feeds: Mapping[str, Array], path: str) -> tuple[str, ...]:
    """Return the name in the feed for each Parameter of a model.

    The feed may use the name of the Parameter or of its tensor.

    Raises:
        Failure: an array is missing, superfluous, or of the wrong type or shape, or the file is an ONNX model
            with an input that OpenVINO reads as a constant.
    """
    parameters = model.get_parameters()
    names = [
        list(dict.fromkeys([*sorted(parameter.output(0).get_names()), parameter.get_friendly_name()]))
        for parameter in parameters
    ]
    needed = dict(feeds)
    if not set(feeds) <= {name for same in names for name in same}:
        graph = None
        if format_of(path) == ONNX_FORMAT:
            with suppress(Exception):  # keep the names that OpenVINO reports
                import onnx

                graph = onnx.load(path, load_external_data=False).graph
        if graph is not None:
            names = _with_inputs(names, graph)
            for name in feeds.keys() - {name for same in names for name in same}:
                if any(name == tensor.name for tensor in graph.initializer):
                    message = f"OpenVINO reads input {name!r} as a constant, as it has an initializer"
                    raise Failure("unsupported", message)
                # the input is missing in the model because nothing depends on it
                if any(name == value.name for value in graph.input):
                    del needed[name]
    inputs = [
        ModelInput(
            same, type_name(parameter.get_element_type()), partial_shape(parameter.get_partial_shape())
        )
        for parameter, same in zip(parameters, names, strict=True)
    ]
    return names_of_feeds(inputs, needed)


def output_names(model: Any) -> list[str]:
    """Return the names of the outputs, equal to those of `evaluate_model`."""
    outputs: list[str] = []
    for result in model.get_results():
        own, names, source = result.get_friendly_name(), result.output(0).get_names(), result.input_value(0)
        node = source.get_node()
        if own.endswith(_SINK):
            name = own.removesuffix(_SINK)
        elif names:
            name = min(names)
        else:
            name = node.get_friendly_name() + (f".{source.get_index()}" if len(node.outputs()) > 1 else "")
        if name in outputs and not own.endswith(_SINK):
            name = own
            while name in outputs:
                name += "'"
        outputs.append(name)
    return outputs


def _with_inputs(names: list[list[str]], graph: Any) -> list[list[str]]:
    """Return the names of each Parameter, with the name of the ONNX input added.

    OpenVINO removes nodes without effect, such as Dropout, and gives the input before such a node the name of
    the node's output. So the input's own name is restored: by position, if Parameters and inputs have the
    same
    order, else by searching the input upstream of that output.

    Raises:
        Failure: several inputs are possible.
    """
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [value.name for value in graph.input if value.name not in constants]
    input_names = [next((name for name in same if name in inputs), "") for same in names]
    free = [name for name in inputs if name not in input_names]
    pairs = list(zip(input_names, inputs, strict=False))
    if len(input_names) == len(inputs) and all(name in {"", place} for name, place in pairs):
        return [same if name else [place, *same] for same, (name, place) in zip(names, pairs, strict=True)]
    before = {name: list(node.input) for node in graph.node for name in node.output}
    completed = list[list[str]]()
    for same, name in zip(names, input_names, strict=True):
        origins = [] if name else [candidate for candidate in free if candidate in _origins(same, before)]
        if len(origins) > 1:
            message = f"OpenVINO renames inputs of the model: its {same[0]} may be {listed(origins)}"
            raise Failure("unsupported", message)
        completed.append([*origins, *same])
    return completed


def _origins(names: Sequence[str], before: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the names of some values of an ONNX graph, and of all values upstream."""
    seen, pending = set[str](), list(names)
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending += before.get(name, ())
    return seen


def type_name(element_type: Any) -> str:
    """Return our name of an OpenVINO element type."""
    return str(element_type.get_type_name())


def partial_shape(shape: Any) -> Shape:
    """Convert an OpenVINO shape to our type."""
    if shape.rank.is_dynamic:
        return None
    bounds = [(dim.get_min_length(), dim.get_max_length()) for dim in shape]
    return tuple(low if low == high else Bounds(low, high if high >= 0 else None) for low, high in bounds)


def to_tensor(array: Array) -> Any:
    """Convert an array to an OpenVINO tensor.

    The tensor may share the array's memory, which must stay alive.
    """
    import openvino

    row = from_dtype(array.dtype)
    assert row is not None
    if row.kind == _STRING:
        return openvino.Tensor(array.astype(np.str_) if array.size else np.empty(array.shape, np.str_))
    type, shape = getattr(openvino.Type, row.name, None), openvino.Shape(list(array.shape))
    if type is None:
        raise Failure("unsupported", f"this release of OpenVINO has no {row.name}")
    if not array.size:
        return openvino.Tensor(type, shape)
    flat = np.ascontiguousarray(array).reshape(-1)
    if row.bits >= 8 and array.flags.c_contiguous:
        return openvino.Tensor(flat.view(np.uint8), shape, type)
    tensor = openvino.Tensor(type, shape)
    tensor.data.reshape(-1).view(np.uint8)[:] = flat.view(np.uint8) if row.bits >= 8 else pack(flat, row.bits)
    return tensor


def to_array(tensor: Any, *, copy: bool = True) -> Array:
    """Convert a tensor to an array; with `copy` the array owns its memory, because tensors may change later.

    Raises:
        Failure: NumPy has no such type, or the runtime has overwritten its own memory.
    """
    name = type_name(tensor.get_element_type())
    if name == _STRING:
        return np.array(tensor.str_data, object).reshape(tuple(tensor.get_shape()))
    row = ELEMENT_TYPES.get(name)
    if row is None or dtype(row) is None:
        raise Failure("unsupported", f"an output is {name}, which NumPy has no type for")
    try:
        # reading OpenVINO's shapes is slow, but for packed types NumPy's shape differs
        shape = tensor.data.shape if row.bits >= 8 else tuple(tensor.get_shape())
        if tensor.get_size() == 0:
            return np.empty(shape, dtype(row))
        raw = np.ascontiguousarray(tensor.data).reshape(-1).view(np.uint8).data
        array = decode(raw, row, shape)
    except (IndexError, MemoryError, OverflowError, RuntimeError, ValueError) as error:
        raise Failure("crashed", f"the process is damaged: an output cannot be read: {error}") from None
    if array is None:
        problem = f"an output of shape {show(shape)} has {len(raw)} bytes"
        raise Failure("crashed", f"the process is damaged: {problem}")
    return array.copy() if copy else array
