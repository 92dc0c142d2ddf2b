"""The inputs and outputs of a model as OpenVINO has it, by the names that users know."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.formats import ONNX_FORMAT, format_of
from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.runners.openvino.tensors import to_tensor, type_name
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
    parameters, names = model.get_parameters(), input_names(model, feeds, path)
    numbers = {name: n for n, same in enumerate(names) for name in same}
    given: dict[int, str] = {}
    for name in feeds:
        if name not in numbers:
            failure = _unknown(name, [same[0] for same in names], _graph_of(path))
            if failure is None:
                continue
            raise failure
        other = given.setdefault(numbers[name], name)
        if other != name:
            raise Failure("refused", f"{other!r} and {name!r} are the same input, expected one of them")
    missing = [same[0] for n, same in enumerate(names) if n not in given]
    if missing:
        raise Failure("refused", f"no array is given for {', '.join(missing)}")
    return [_tensor(one, given[n], feeds[given[n]]) for n, one in enumerate(parameters)]


def input_names(model: Any, feeds: Collection[str], path: str) -> list[list[str]]:
    """Return for each Parameter every name of that input, the usual one first.

    Where a node of an ONNX model has no effect, as Dropout has none, OpenVINO gives the input in front
    of it the name of the node's output, and forgets its own.

    Args:
        model: of OpenVINO.
        feeds: the names that the caller uses.
        path: of the file.
    """
    names = [_names(parameter) for parameter in model.get_parameters()]
    if set(feeds) <= {name for same in names for name in same}:
        return names
    graph = _graph_of(path)
    if graph is None:
        return names
    own = {value.name for value in graph.input}
    before = {name: node.input[0] for node in graph.node if node.input for name in node.output[:1]}
    return [same if own & set(same) else [*_origin(same[0], before), *same] for same in names]


def shapes_by_parameter(
    model: Any, names: Sequence[Collection[str]], feeds: Mapping[str, Array]
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the feeds by the names of the Parameters.

    Args:
        model: of OpenVINO.
        names: every name of each Parameter.
        feeds: by any of them.
    """
    pairs = zip(model.get_parameters(), names, strict=True)
    known = {name: str(one.get_friendly_name()) for one, same in pairs for name in same}
    return {known[name]: array.shape for name, array in feeds.items() if name in known}


def _origin(name: str, before: Mapping[str, str]) -> list[str]:
    """Return the input that a value of an ONNX model comes from, by the first inputs of nodes."""
    seen = {name}
    while before.get(name, name) not in seen:
        name = before[name]
        seen.add(name)
    return [name]


def _names(parameter: Any) -> list[str]:
    return list(dict.fromkeys([*sorted(parameter.output(0).get_names()), parameter.get_friendly_name()]))


def output_names(model: Any) -> list[str]:
    """Return the names of the outputs: those that `evaluate_model` gives them."""
    found: list[str] = []
    for result in model.get_results():
        name = _output_name(result)
        if name in found and not result.get_friendly_name().endswith(_SINK):
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


def _unknown(name: str, known: Sequence[str], graph: Any) -> Failure | None:
    """Return what is wrong with a name that OpenVINO does not have; None if it needs no such input.

    Args:
        name: of a feed.
        known: the names of the inputs.
        graph: of the ONNX model, None for an IR.
    """
    if graph is not None and any(name == value.name for value in graph.input):
        if all(name != tensor.name for tensor in graph.initializer):
            return None
        return Failure(
            "unsupported", f"OpenVINO takes input {name!r} for a constant, as it has an initializer"
        )
    return Failure("refused", f"the model has no input {name!r}, expected {', '.join(known) or 'none'}")


def _graph_of(path: str) -> Any:
    """Return the graph of an ONNX file, None if it is an IR or cannot be read."""
    if format_of(path) != ONNX_FORMAT:
        return None
    import onnx

    try:
        return onnx.load(path, load_external_data=False).graph
    except Exception:  # OpenVINO has read it somehow
        return None
