"""The inputs and outputs of a model as OpenVINO has it, by the names that users know."""

from collections.abc import Mapping, Sequence
from typing import Any

from ir_scatter.elements import ELEMENT_TYPES, dtype
from ir_scatter.ops.plain.case import Array
from ir_scatter.runners.openvino_tensors import to_tensor, type_name
from ir_scatter.runners.service import Failure

_SINK = "/sink_port_0"
"""What the ONNX frontend adds to the name of an output to name its Result."""


def input_tensors(model: Any, feeds: Mapping[str, Array], path: str) -> list[Any]:
    """Return one tensor for each Parameter.

    Args:
        model: of OpenVINO.
        feeds: by the name of the Parameter or of its tensor.
        path: the file; an ONNX model may have inputs that OpenVINO takes for constants.

    Raises:
        Failure: a feed is missing, superfluous, or of the wrong type or shape.
    """
    parameters = model.get_parameters()
    numbers = {name: n for n, parameter in enumerate(parameters) for name in parameter_names(parameter)}
    given: dict[int, str] = {}
    for name in feeds:
        if name not in numbers:
            if _is_dropped(name, path):
                continue
            raise _unknown(name, [parameter_names(parameter)[0] for parameter in parameters], path)
        other = given.setdefault(numbers[name], name)
        if other != name:
            raise Failure("refused", f"{other!r} and {name!r} are the same input, expected one of them")
    missing = [parameter_names(one)[0] for n, one in enumerate(parameters) if n not in given]
    if missing:
        raise Failure("refused", f"no array is given for {', '.join(missing)}")
    return [_tensor(one, given[n], feeds[given[n]]) for n, one in enumerate(parameters)]


def parameter_names(parameter: Any) -> list[str]:
    """Return every name of an input, the usual one first."""
    return list(dict.fromkeys([*sorted(parameter.output(0).get_names()), parameter.get_friendly_name()]))


def output_names(model: Any) -> list[str]:
    """Return the names of the outputs: those that `evaluate_model` gives them."""
    found: list[str] = []
    for result in model.get_results():
        name = _output_name(result)
        if name in found:
            name = result.get_friendly_name()
        while name in found:
            name += "'"
        found.append(name)
    return found


def _output_name(result: Any) -> str:
    own = result.get_friendly_name()
    if own.endswith(_SINK):
        return str(own.removesuffix(_SINK))
    names = result.output(0).get_names()
    if names:
        return str(min(names))
    source = result.input_value(0)
    node = source.get_node()
    suffix = f".{source.get_index()}" if len(node.outputs()) > 1 else ""
    return f"{node.get_friendly_name()}{suffix}"


def _tensor(parameter: Any, name: str, array: Array) -> Any:
    type = type_name(parameter.get_element_type())
    row = ELEMENT_TYPES.get(type)
    expected = None if row is None else dtype(row)
    if expected is None:
        raise Failure("unsupported", f"{name} is {type}, which NumPy has no type for")
    if array.dtype != expected:
        raise Failure("refused", f"{name} is {array.dtype.name}, expected {expected.name}")
    shape = parameter.get_partial_shape()
    if not fits(shape, array.shape):
        wanted = str(shape).replace(",", ", ")
        raise Failure("refused", f"{name} has shape {list(array.shape)}, expected {wanted}")
    return to_tensor(array, type)


def fits(partial: Any, shape: Sequence[int]) -> bool:
    """Tell whether an array of a shape can be fed to an input."""
    if partial.rank.is_dynamic:
        return True
    return len(partial) == len(shape) and all(
        one.get_min_length() <= size and (one.get_max_length() < 0 or size <= one.get_max_length())
        for one, size in zip(partial, shape, strict=True)
    )


def _is_dropped(name: str, path: str) -> bool:
    """Tell whether an ONNX model has an input that OpenVINO left out, as nothing needs it."""
    if path.lower().endswith(".xml"):
        return False
    import onnx

    try:
        graph = onnx.load(path, load_external_data=False).graph
    except Exception:  # it is no ONNX model
        return False
    known = {value.name for value in graph.input} - {tensor.name for tensor in graph.initializer}
    return name in known


def _unknown(name: str, known: Sequence[str], path: str) -> Failure:
    if not path.lower().endswith(".xml") and name in _initializers(path):
        return Failure(
            "unsupported", f"OpenVINO takes input {name!r} for a constant, as it has an initializer"
        )
    return Failure("refused", f"the model has no input {name!r}, expected {', '.join(known) or 'none'}")


def _initializers(path: str) -> set[str]:
    import onnx

    try:
        graph = onnx.load(path, load_external_data=False).graph
    except Exception:  # it is no ONNX model
        return set()
    return {tensor.name for tensor in graph.initializer} & {value.name for value in graph.input}
