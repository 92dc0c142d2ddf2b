"""NumPy kernels of general operators, those that exporters and conversions put around scatter operators.

    op = find_computed(node.domain, node.type)  # of ops/general.py
    outputs = compute(op, node.domain, inputs, node.attributes, opset=18, element_limit=1_000_000)

The row of an operator names its kernel.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array, in_own_dtype
from ir_scatter.core.model import OPENVINO
from ir_scatter.core.tensors import Constant
from ir_scatter.ops.attributes import Attributes
from ir_scatter.ops.general import GeneralOp
from ir_scatter.ops.general_kernels.base import Kernel, KernelCase, OutputTooLarge, UnsupportedCase

__all__ = ["OutputTooLarge", "UnsupportedCase", "compute"]

_REFUSALS = (UnsupportedCase, ArithmeticError, LookupError, MemoryError, TypeError, ValueError)
"""Exceptions of kernels, and of NumPy, that mean that a case is refused."""


def compute(
    op: GeneralOp,
    domain: str,
    inputs: Sequence[Array | None],
    attributes: Mapping[str, Any],
    *,
    opset: int | None,
    output_count: int = 0,
    element_limit: int | None = None,
) -> tuple[Array, ...]:
    """Compute the outputs of an operator that has a kernel.

    Inputs are in the order of the specification, None for a missing one; attributes as written: text
    in an IR, Python values in ONNX, an array or a constant for a tensor. `element_limit` is for each output.

    Integers wrap around in their own type. A case that a specification calls undefined is refused, not
    guessed. Outputs have the element type of their data, in its own dtype; they may be read-only, and
    views of the inputs.

    Raises:
        UnsupportedCase: the case is illegal, undefined, unknown or (OutputTooLarge) beyond the limit.
    """
    try:
        with np.errstate(all="ignore"):
            unknown = sorted(set(attributes) - set(op.attributes_in(domain)))
            if unknown:
                raise UnsupportedCase(f"attribute {unknown[0]} is not known")
            operands = tuple(None if array is None else in_own_dtype(array) for array in inputs)
            loaded = Attributes(_loaded(attributes))
            case = KernelCase(operands, loaded, domain != OPENVINO, opset, output_count, element_limit)
            if op.keeps_shape:
                case.reserve(case.array(0).shape)
            outputs = _kernel(op.kernel_in(domain))(case)
            arrays = tuple(map(np.asarray, outputs if isinstance(outputs, tuple) else (outputs,)))
            for array in arrays:
                case.reserve(array.shape)
            return arrays
    except _REFUSALS as error:
        refusal = OutputTooLarge if isinstance(error, OutputTooLarge) else UnsupportedCase
        raise refusal(f"{op.type_in(domain)}: {error}") from error


def _loaded(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    loaded = {name: value.load() for name, value in attributes.items() if isinstance(value, Constant)}
    if any(array is None for array in loaded.values()):
        raise UnsupportedCase("the values of a tensor are missing")
    return {**attributes, **loaded} if loaded else attributes


@cache
def _kernel(text: str) -> Kernel:
    path, _, argument = text.rstrip(")").partition("(")
    module_name, _, function_name = path.partition(".")
    module = import_module(f"{__name__}.{module_name}")
    function: Any = getattr(module, function_name)
    if argument:
        source: Any = np if argument.startswith("np.") else module
        function = function(getattr(source, argument.removeprefix("np.")))
    return function  # type: ignore[no-any-return]
