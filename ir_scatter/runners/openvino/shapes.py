"""Shapes of an IR as OpenVINO propagates them from given shapes of its inputs."""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ir_scatter.core.model import OPENVINO
from ir_scatter.core.shapes import Bounds, Dim, Shape
from ir_scatter.ops.lookup import scatter_types
from ir_scatter.runners.child import ask

_Coded = list[list[int | None]] | None


def propagate(path: str, input_shapes: Mapping[str, Shape]) -> tuple[dict[str, tuple[Shape, ...]], str]:
    """Return the shapes of the outputs of every node by scope, and what went wrong.

    A scatter node that refuses its inputs is nothing that went wrong: the rules say it better.

    Args:
        path: the `.xml`.
        input_shapes: by the name of the Parameter or of its tensor.
    """
    question = {"path": path, "shapes": {name: _code(shape) for name, shape in input_shapes.items()}}
    answer, problem = ask(__name__, question)
    if answer is not None and answer.get("error"):
        problem = answer["error"]
    if problem or answer is None:
        return {}, f"OpenVINO cannot propagate the shapes: {problem}"
    known = scatter_types(OPENVINO)
    for type, reason in answer["refusals"]:
        if type not in known and not any(f"::{name} " in reason for name in known):
            problem = problem or f"OpenVINO cannot propagate the shapes everywhere: {reason}"
    shapes = answer["shapes"].items()
    return {scope: tuple(map(_decode, coded)) for scope, coded in shapes}, problem


def _code(shape: Shape) -> _Coded:
    if shape is None:
        return None
    return [[dim, dim] if isinstance(dim, int) else [dim.low, dim.high] for dim in shape]


def _decode(coded: _Coded) -> Shape:
    return None if coded is None else tuple(_dim(low or 0, high) for low, high in coded)


def _dim(low: int, high: int | None) -> Dim:
    return low if low == high else Bounds(low, high)


def _answer(question: dict[str, Any]) -> dict[str, Any]:
    """Read, reshape and list the shapes; runs in the child process.

    Every node is asked on its own, so that one that refuses its inputs does not hide the shapes of
    the others.
    """
    import openvino

    try:
        model = openvino.Core().read_model(question["path"])
        for parameter, shape in _wanted(model, question["shapes"]):
            parameter.set_partial_shape(shape)
    except Exception as error:  # whatever the runtime says is the answer
        return {"error": _sentence(str(error))}
    refusals = []
    for node in model.get_ordered_ops():
        try:
            node.validate_and_infer_types()
        except Exception as error:
            refusals.append([node.get_type_name(), _sentence(str(error))])
    return {"shapes": dict(_shapes(model, "")), "refusals": refusals}


def _wanted(model: Any, shapes: dict[str, _Coded]) -> Iterator[tuple[Any, Any]]:
    import openvino

    for parameter in model.get_parameters():
        names = {parameter.get_friendly_name(), *parameter.output(0).get_names()}
        for name in names & shapes.keys():
            coded = shapes[name]
            if coded is None:
                yield parameter, openvino.PartialShape.dynamic()
            else:
                dims = [openvino.Dimension(low, -1 if high is None else high) for low, high in coded]
                yield parameter, openvino.PartialShape(dims)


def _shapes(model: Any, scope: str) -> Iterator[tuple[str, list[_Coded]]]:
    for node in model.get_ops():
        name = scope + node.get_friendly_name()
        shapes = [output.get_partial_shape() for output in node.outputs()]
        yield name, [_coded_partial(shape) for shape in shapes]
        for body_name, body in _bodies(node):
            yield from _shapes(body, f"{name}:{body_name}/")


def _bodies(node: Any) -> list[tuple[str, Any]]:
    if hasattr(node, "get_then_body"):
        return [("then_body", node.get_then_body()), ("else_body", node.get_else_body())]
    if hasattr(node, "get_body"):
        return [("body", node.get_body())]
    return [("body", node.get_function())] if hasattr(node, "get_function") else []


def _coded_partial(shape: Any) -> _Coded:
    if shape.rank.is_dynamic:
        return None
    high = [dim.get_max_length() for dim in shape]
    low = [dim.get_min_length() for dim in shape]
    return [[a, b if b >= 0 else None] for a, b in zip(low, high, strict=True)]


def _sentence(message: str) -> str:
    """Return what matters of OpenVINO's message: its last lines without places in its sources."""
    lines = [line.strip() for line in message.splitlines()]
    kept = [line for line in lines if line and not line.startswith(("Exception from", "Check '"))]
    return " ".join(kept)[:500]


if __name__ == "__main__":
    json.dump(_answer(json.load(sys.stdin)), sys.stdout)
