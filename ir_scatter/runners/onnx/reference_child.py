"""Runs models on the reference evaluator of onnx: what happens in its process."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ir_scatter.core.element_types import ElementType, from_onnx_number
from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.runners.onnx.answers import OnnxAnswers, shortened
from ir_scatter.runners.onnx.inputs import Expected
from ir_scatter.runners.service import Failure, needs, serve

_UNSUPPORTED = (NotImplementedError, ImportError)
_UNSUPPORTED_WORDS = re.compile("no (?:registered )?implementation", re.IGNORECASE)
_TALK = re.compile(r", schema\.has_function.*", re.DOTALL)
"""What is said to the developers of onnx, with a list of all operators."""


def main() -> None:
    """Serve."""
    runtime = _Reference()
    serve(
        {"run": runtime.run, "describe": runtime.describe},
        needs("onnx.ModelProto", "onnx.reference.ReferenceEvaluator"),
    )


class _Reference(OnnxAnswers):
    """What computes a model is a pair: the model, and its evaluator."""

    loops_join = True

    def describe(self, question: dict[str, Any], _: Sequence[Array]) -> tuple[dict[str, Any], list[Array]]:
        """Say that the package can be imported."""
        import onnx.reference

        return {"status": "ok", "full_name": onnx.reference.ReferenceEvaluator.__name__}, []

    def load(self, path: str) -> Any:
        """Return a model and its evaluator."""
        return self.load_changed(self.read(path), path)

    def load_changed(self, model: Any, path: str) -> Any:
        """Return a changed model and its evaluator."""
        from onnx.external_data_helper import load_external_data_for_model
        from onnx.reference import ReferenceEvaluator

        try:
            load_external_data_for_model(model, str(Path(path).parent))
            return model, ReferenceEvaluator(model)
        except Exception as error:  # whatever the runtime says is the answer
            raise _failure(error) from None

    def inputs(self, session: Any) -> list[Expected]:
        """Return what the model asks for."""
        graph = session[0].graph
        defaults = {tensor.name for tensor in graph.initializer}
        return [Expected(one.name, _type(one), _shape(one), one.name in defaults) for one in graph.input]

    def output_names(self, session: Any) -> list[str]:
        """Return the names of the outputs."""
        return [output.name for output in session[0].graph.output]

    def infer(self, session: Any, names: Sequence[str], feeds: Mapping[str, Array]) -> list[Array]:
        """Return some outputs; evaluators may write to what they are given."""
        try:
            with np.errstate(all="ignore"):
                outputs = session[1].run(list(names), {name: feed.copy() for name, feed in feeds.items()})
        except Exception as error:
            raise _failure(error) from None
        return [_array(output, name) for name, output in zip(names, outputs, strict=True)]


def _array(output: Any, name: str) -> Array:
    """Return an output as an array of its own: evaluators may hand back what they were given."""
    if not isinstance(output, np.ndarray | np.generic):
        raise Failure("unsupported", f"output {name} is no tensor")
    array = np.array(output)
    return array.astype(object) if array.dtype.kind in "UT" else array


def _inputs(model: Any) -> list[Expected]:
    defaults = {tensor.name for tensor in model.graph.initializer}
    return [Expected(one.name, _type(one), _shape(one), one.name in defaults) for one in model.graph.input]


def _type(value: Any) -> ElementType | None:
    is_tensor = value.type.WhichOneof("value") == "tensor_type"
    return from_onnx_number(value.type.tensor_type.elem_type) if is_tensor else None


def _shape(value: Any) -> tuple[Any, ...] | None:
    if not value.type.tensor_type.HasField("shape"):
        return None
    dims = value.type.tensor_type.shape.dim
    return tuple(dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in dims)


def _failure(error: Exception) -> Failure:
    text = _TALK.sub("", str(error))
    is_unsupported = isinstance(error, _UNSUPPORTED) or _UNSUPPORTED_WORDS.search(text) is not None
    message = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return Failure("unsupported" if is_unsupported else "refused", shortened(message))
