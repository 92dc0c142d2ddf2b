"""The child process of onnx's reference evaluator."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.process import Failure, require, shortened
from ir_scatter.formats.onnx.inference import declared
from ir_scatter.runners.engine import ModelInput, as_failures, run, stream
from ir_scatter.runners.onnx.child import OnnxEngine, message_of

_UNSUPPORTED = (NotImplementedError, ImportError)
_UNSUPPORTED_WORDS = re.compile("no (?:registered )?implementation", re.IGNORECASE)
_DEVELOPER_HINT = re.compile(r", schema\.has_function.*", re.DOTALL)
"""The start of a long hint to onnx developers in error messages, which is removed."""

_OTHER = "no tensor of a known type"


def handlers() -> dict[str, Callable[..., Any]]:
    require("onnx.ModelProto", "onnx.reference.ReferenceEvaluator")
    return {
        "run": partial(run, _Reference),
        "stream": partial(stream, _Reference),
        "describe": lambda device: {"full_name": "ReferenceEvaluator"},
    }


class _Reference(OnnxEngine):
    """An engine for the reference evaluator. A session is a pair (model, evaluator)."""

    loops_join = True

    def load(self, model: Any) -> Any:
        from onnx.external_data_helper import load_external_data_for_model
        from onnx.reference import ReferenceEvaluator

        model = message_of(self.path) if model is None else model
        with as_failures(_failure):
            load_external_data_for_model(model, str(Path(self.path).parent))
            return model, ReferenceEvaluator(model)

    def ends(self, session: Any) -> tuple[list[ModelInput], list[str]]:
        graph = session[0].graph
        defaults = {tensor.name for tensor in graph.initializer}
        inputs = []
        for one in graph.input:
            type, shape = declared(one)
            inputs.append(ModelInput((one.name,), type.name if type else _OTHER, shape, one.name in defaults))
        return inputs, [output.name for output in graph.output]

    def compute(self, session: Any, names: Sequence[str]) -> list[Array]:
        # evaluators may overwrite their inputs
        feeds = {name: feed.copy() for name, feed in self.feeds.items()}
        with as_failures(_failure, at_inference=True), np.errstate(all="ignore"):
            outputs = session[1].run(list(names), feeds)
        return [_array(output, name) for name, output in zip(names, outputs, strict=True)]


def _array(output: Any, name: str) -> Array:
    """Return a copy of an output, because evaluators may return their inputs."""
    if not isinstance(output, np.ndarray | np.generic):
        raise Failure("unsupported", f"output {name} is not a tensor")
    array = np.array(output)
    return array.astype(object) if array.dtype.kind in "UT" else array


def _failure(error: Exception) -> Failure:
    text = _DEVELOPER_HINT.sub("", str(error))
    is_unsupported = isinstance(error, _UNSUPPORTED) or _UNSUPPORTED_WORDS.search(text) is not None
    message = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return Failure("unsupported" if is_unsupported else "refused", shortened(message))
