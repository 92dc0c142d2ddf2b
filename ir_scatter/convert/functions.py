"""Inlines the local functions of ONNX models for devices that refuse their calls."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ir_scatter.convert.conversion import Refused
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.model import ONNX, Model
from ir_scatter.defects import by_code
from ir_scatter.formats import FORMATS
from ir_scatter.ops.lookup import scatter_types
from ir_scatter.portability import Portability
from ir_scatter.reading import read_written
from ir_scatter.rewrites.refusals import Reason

_REFUSED = "DEV117"


class InlinedModel(NamedTuple):
    """A model whose functions are inlined.

    Attributes:
        model: the new model.
        calls: the number of calls of each function in the main graph and its bodies, by the function's name.
        origins: the scope in the old model of each scatter node that comes from a function, by its new scope.
    """

    model: Model
    calls: Mapping[str, int]
    origins: Mapping[str, str]


def refuses_functions(portability: Portability) -> bool:
    """Return whether a device refuses all models that call local functions."""
    return any(evidence.is_bad for _, evidence in portability.evidence(by_code()[_REFUSED]))


def inline_functions(model: Model) -> InlinedModel | Refused | None:
    """Inline all functions that an ONNX model calls; None if it calls none.

    Returns a refusal if that is impossible.
    """
    if model.domain != ONNX or not model.functions:
        return None
    from ir_scatter.formats.onnx.inlining import (
        CannotInline,
        OtherOpset,
        calls_functions,
        inline,
        take_origins,
    )

    if not calls_functions(model.source):
        return None
    try:
        try:
            inlined = inline(model.source)
        except OtherOpset:
            inlined = inline(_in_one_opset(model))
    except CannotInline as error:
        return _refused(model, str(error))
    try:
        content = inlined.model.SerializeToString()
    except Exception:  # protobuf raises EncodeError or ValueError if a message is too large
        return _refused(model, "the inlined model takes more than 2 GiB")
    new = replace(read_written(model, content, b""), identity=model.identity)
    return InlinedModel(new, inlined.calls, take_origins(new, scatter_types(ONNX)))


def _in_one_opset(model: Model) -> Any:
    """Return the message of a model, with its functions converted to the opset of its main graph."""
    from ir_scatter.convert.opset.move import plan_move
    from ir_scatter.formats.onnx.inlining import CannotInline

    opset = model.opset_imports.get(ONNX)
    if opset is None:
        raise CannotInline("functions are of an opset that the model does not import")
    move = plan_move(model, opset)
    if move.obstacles:
        scope, type, reason = move.obstacles[0]
        raise CannotInline(f"{scope} cannot move to opset {opset}: {type}: {reason}")
    return read_written(model, FORMATS[model.format].write(model, (), move).content, b"").source


def _refused(model: Model, reason: str) -> Refused:
    message = f"OpenVINO refuses calls of functions, and they cannot be inlined: {reason}"
    return Refused(Reason.KNOWN_DEFECTS, message, "", Location(model.path))
