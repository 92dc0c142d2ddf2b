"""The child program for earlier releases of OpenVINO: adds the names of the current Python API."""

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

from ir_scatter.core.process import Failure, shortened
from ir_scatter.runners.openvino import child

_MOVED = ("op", "opset8", "passes")
"""Modules of `openvino` that releases before 2025 have under `openvino.runtime`."""


def handlers() -> dict[str, Callable[..., Any]]:
    with suppress(ImportError):  # the child reports a missing package
        import openvino

        if not hasattr(openvino, "opset8"):
            old = import_module("openvino.runtime")
            for name in _MOVED:
                setattr(openvino, name, import_module(f"openvino.runtime.{name}"))
                sys.modules[f"openvino.{name}"] = getattr(openvino, name)
            for name in vars(old).keys() - vars(openvino).keys():
                setattr(openvino, name, getattr(old, name))
            openvino.op.Constant.get_tensor_view = _tensor_of
            if not hasattr(openvino.InferRequest, "reset_state"):
                openvino.InferRequest.reset_state = _reset_state
    return {name: partial(_call, handler) for name, handler in child.handlers().items()}


def _call(handler: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return handler(*arguments)
    # a missing function of an old release is not a bug of this library
    except (AttributeError, TypeError) as error:
        message = f"this release lacks a needed function: {error}"
        raise Failure("unsupported", shortened(message)) from None


def _tensor_of(constant: Any) -> Any:
    """Return a copy of a constant's elements: earlier releases cannot expose every element type."""
    import openvino

    tensor = openvino.Tensor(constant.get_element_type(), constant.output(0).get_shape())
    openvino.Model([openvino.opset8.result(constant)], []).evaluate([tensor], [])
    return tensor


def _reset_state(request: Any) -> None:
    for state in request.query_state():
        state.reset()
