"""What else OpenVINO is asked: to write an ONNX model as an IR, and to propagate shapes through an IR."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from ir_scatter.core.model import OPENVINO
from ir_scatter.core.process import Failure
from ir_scatter.core.shapes import Shape, parse_shape, show
from ir_scatter.ops.lookup import scatter_types
from ir_scatter.runners.openvino.messages import sentence
from ir_scatter.runners.openvino.places import walk
from ir_scatter.runners.openvino.runner import OpenVinoRunner

_LONGEST = 500
_RUNNER = OpenVinoRunner("CPU")


def export(source: str, target: str) -> str:
    """Write an ONNX model as an IR with all of its precision; return why not, "" if that works."""
    try:
        _RUNNER.ask("export", source, target)
    except Failure as failure:
        return failure.message
    return ""


def propagate(path: str, input_shapes: Mapping[str, Shape]) -> tuple[dict[str, tuple[Shape, ...]], str]:
    """Return the shapes of the outputs of every node by scope, and what went wrong.

    Input shapes are given by the name of a Parameter or of its tensor. A scatter node that refuses its
    inputs is nothing that went wrong: the rules say it better.
    """
    shapes = {name: show(_without_symbols(shape)) for name, shape in input_shapes.items()}
    try:
        (found, reason), _ = _RUNNER.ask("propagate", os.path.abspath(path), shapes)
    except Failure as failure:
        return {}, f"OpenVINO cannot propagate the shapes: {failure.message}"
    problem = f"OpenVINO cannot propagate the shapes everywhere: {reason}" if reason else ""
    return {scope: tuple(map(parse_shape, shown)) for scope, shown in found.items()}, problem


def _without_symbols(shape: Shape) -> Shape:
    return shape and tuple(dim if isinstance(dim, int) else dim._replace(symbol=None) for dim in shape)


def _export(source: str, target: str) -> None:
    import openvino

    try:
        model = openvino.Core().read_model(source)
        openvino.save_model(model, target, compress_to_fp16=False)
    except Exception as error:  # whatever the runtime says is the answer
        raise Failure("refused", sentence(error)) from None


def _propagate(path: str, shapes: Mapping[str, str]) -> tuple[dict[str, list[str]], str]:
    """Ask every node on its own, so that one that refuses does not hide the shapes of the others."""
    import openvino

    try:
        model = openvino.Core().read_model(path)
        for parameter in model.get_parameters():
            names = {parameter.get_friendly_name(), *parameter.output(0).get_names()}
            for name in names & shapes.keys():
                parameter.set_partial_shape(openvino.PartialShape(shapes[name]))
    except Exception as error:  # whatever the runtime says is the answer
        raise Failure("refused", _last_lines(error)) from None
    known, refusal = scatter_types(OPENVINO), ""
    for node in model.get_ordered_ops():
        try:
            node.validate_and_infer_types()
        except Exception as error:
            reason = _last_lines(error)
            if node.get_type_name() not in known and not any(f"::{name} " in reason for name in known):
                refusal = refusal or reason
    shapes_by_scope = {
        scope: [str(output.get_partial_shape()) for output in place.node.outputs()]
        for scope, place in walk(model)
    }
    return shapes_by_scope, refusal


HANDLERS: Mapping[str, Callable[..., Any]] = {"export": _export, "propagate": _propagate}


def _last_lines(error: BaseException) -> str:
    """Return what matters of a message that names a node: its lines without places in OpenVINO's sources."""
    lines = [line.strip() for line in str(error).splitlines()]
    kept = [line for line in lines if line and not line.startswith(("Exception from", "Check '"))]
    return " ".join(kept)[:_LONGEST]
