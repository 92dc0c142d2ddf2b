"""Kernels of operators that the onnx package computes, with its reference evaluator.

The package is imported on the first computation. A row names such a kernel `reference.onnx('Type')`.
Operators that the evaluator computes wrongly or slowly have other kernels.
"""

from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.ops.general_kernels.base import Kernel, KernelCase, UnsupportedCase


def onnx(name: str) -> Kernel:
    """Return the kernel of an operator of ONNX, "Type" or "domain:Type"."""
    domain, _, type = name.rpartition(":")

    def kernel(case: KernelCase) -> tuple[Array, ...]:
        return _evaluated(case, domain, type)

    return kernel


def _evaluated(case: KernelCase, domain: str, type: str) -> tuple[Array, ...]:
    """Run a model of one node. Any error of the evaluator becomes UnsupportedCase."""
    from onnx import helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    names = ["" if array is None else f"x{port}" for port, array in enumerate(case.inputs)]
    feeds = {name: array for name, array in zip(names, case.inputs, strict=True) if array is not None}
    outputs = [f"y{number}" for number in range(max(1, case.output_count))]
    attributes: dict[str, Any] = {
        key: numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for key, value in case.attributes.values.items()
    }
    try:
        node = helper.make_node(type, names, outputs, domain=domain, **attributes)
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in feeds.items()
        ]
        graph = helper.make_graph(
            [node], "node", inputs, [*map(helper.make_empty_tensor_value_info, outputs)]
        )
        opsets = [helper.make_opsetid(domain, case.opset or 1)]
        if domain:
            opsets.append(helper.make_opsetid("", 21))
        model = helper.make_model(graph, opset_imports=opsets)
        results = ReferenceEvaluator(model).run(None, feeds)
    except Exception as error:
        text = str(error).splitlines()[0] if str(error) else error.__class__.__name__
        raise UnsupportedCase(f"the reference evaluator of onnx refuses it: {text}") from error
    if not all(isinstance(result, np.ndarray | np.generic) for result in results):
        raise UnsupportedCase("an output is not a tensor")
    return tuple(map(_as_array, results))


def _as_array(result: Any) -> Array:
    """Return a result as an array; text as objects, of which tensors of text consist."""
    array = np.asarray(result)
    return array.astype(object) if array.dtype.kind in "US" else array
