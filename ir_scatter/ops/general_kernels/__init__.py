"""Kernels of general operators: what exporters and conversions put around scatter operators, in NumPy.

    op = find_computed(node.domain, node.type)  # of ops/general.py
    outputs = compute(op, node.domain, inputs, node.attributes, opset=18, element_limit=1_000_000)

Rows say which kernel computes an operator.
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
from ir_scatter.ops.general_kernels.base import Case, Kernel, TooLarge, UnsupportedCase

__all__ = ["TooLarge", "UnsupportedCase", "compute"]

_REFUSALS = (UnsupportedCase, ArithmeticError, LookupError, MemoryError, TypeError, ValueError)
"""Beside what kernels refuse, what NumPy does."""


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

    Inputs are in the order of the document, None for one that is left out; attributes as written: text
    in an IR, Python values in ONNX, an array or a constant for a tensor. `element_limit` is for each output.

    Whole numbers wrap around in their own type. What a document calls undefined is refused, not
    guessed. Outputs have the element type of the data they are made of, in its own dtype; they
    may be read-only, and views of the inputs.

    Raises:
        UnsupportedCase: the case is illegal, undefined, unknown or (TooLarge) beyond the limit.
    """
    try:
        with np.errstate(all="ignore"):
            unknown = sorted(set(attributes) - set(op.attributes_in(domain)))
            if unknown:
                raise UnsupportedCase(f"attribute {unknown[0]} is not known")
            own = tuple(None if array is None else in_own_dtype(array) for array in inputs)
            case = Case(
                own, Attributes(_loaded(attributes)), domain != OPENVINO, opset, output_count, element_limit
            )
            if op.keeps_shape:
                case.reserve(case.array(0).shape)
            found = _kernel(op.kernel_in(domain))(case)
            arrays = tuple(map(np.asarray, found if isinstance(found, tuple) else (found,)))
            for array in arrays:
                case.reserve(array.shape)
            return arrays
    except _REFUSALS as error:
        refusal = TooLarge if isinstance(error, TooLarge) else UnsupportedCase
        raise refusal(f"{op.type_in(domain)}: {error}") from error


def _loaded(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    loaded = {name: one.load() for name, one in attributes.items() if isinstance(one, Constant)}
    if any(array is None for array in loaded.values()):
        raise UnsupportedCase("the values of a tensor are not there")
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
