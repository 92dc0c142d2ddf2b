"""NumPy kernels of general operators: those that exporters and conversions place around scatter operators.

    op = find_computed(node.domain, node.type)  # of ops/general.py
    outputs = compute(op, node.domain, inputs, node.attributes, opset=18, element_limit=1_000_000)

The row of an operator names its kernel.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ir_scatter.core.arrays import Array, in_native_dtype
from ir_scatter.core.model import OPENVINO
from ir_scatter.core.tensors import Constant
from ir_scatter.ops.attributes import Attributes
from ir_scatter.ops.general import GeneralOp
from ir_scatter.ops.general_kernels.base import Kernel, KernelCase, OutputTooLarge, UnsupportedCase

__all__ = ["REFUSALS", "BoundKernel", "OutputTooLarge", "UnsupportedCase", "bind", "compute"]

REFUSALS = (UnsupportedCase, ArithmeticError, LookupError, MemoryError, TypeError, ValueError)
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

    Inputs are in the order of the specification, None for a missing one. Attributes are as written: text in
    an IR, Python values in ONNX, an array or a constant for a tensor. `element_limit` is the limit for each
    output.

    Integers wrap around in their own type. A case that a specification calls undefined is refused. Outputs
    have the element type of their data, in its own dtype; they may be read-only, and views of the inputs.

    Raises:
        UnsupportedCase: the case is illegal, undefined, unknown or (OutputTooLarge) beyond the limit.
    """
    try:
        with np.errstate(all="ignore"):
            case = _case(op, domain, inputs, attributes, opset, output_count, element_limit)
            return _outputs(op, domain, case)
    except REFUSALS as error:
        refusal = OutputTooLarge if isinstance(error, OutputTooLarge) else UnsupportedCase
        raise refusal(f"{op.type_in(domain)}: {error}") from error


class BoundKernel(NamedTuple):
    """A kernel for inputs of certain types and shapes.

    Attributes:
        function: returns the output, or a tuple of several. Raises one of `REFUSALS`, or `Unbound` for values
            that only `compute` supports.
        is_static: whether its outputs always have the types and shapes of `outputs`.
        outputs: the outputs for the inputs that it was bound for.
    """

    function: Callable[..., Any]
    is_static: bool
    outputs: tuple[Array, ...]


def bind(
    op: GeneralOp,
    domain: str,
    inputs: Sequence[Array | None],
    attributes: Mapping[str, Any],
    *,
    fixed: Sequence[bool],
    opset: int | None,
    output_count: int = 0,
    element_limit: int | None = None,
) -> BoundKernel:
    """Compute the outputs for these inputs, and bind the kernel to their types and shapes.

    Args:
        op: see `compute`, as for the other arguments.
        domain: see `compute`.
        inputs: see `compute`.
        attributes: see `compute`.
        fixed: for each input whether it has the same elements in every later call.
        opset: see `compute`.
        output_count: see `compute`.
        element_limit: see `compute`.

    Raises:
        Exception: one of `REFUSALS`; `compute` raises an error with a message for users.
    """
    from ir_scatter.ops.general_kernels.bound import Sample
    from ir_scatter.ops.general_kernels.bound import bind as bind_kernel

    with np.errstate(all="ignore"):
        case = _case(op, domain, inputs, attributes, opset, output_count, element_limit)
        outputs, text = _outputs(op, domain, case), op.model_kernel_in(domain)
        name, argument = _name_and_argument(text)
        sample = Sample(case, tuple(fixed), outputs[0], argument)
        function, is_static = bind_kernel(name, _kernel(text), sample)
    return BoundKernel(function, is_static, outputs)


def _case(
    op: GeneralOp,
    domain: str,
    inputs: Sequence[Array | None],
    attributes: Mapping[str, Any],
    opset: int | None,
    output_count: int,
    element_limit: int | None,
) -> KernelCase:
    unknown = sorted(set(attributes) - set(op.attributes_in(domain)))
    if unknown:
        raise UnsupportedCase(f"attribute {unknown[0]} is unknown")
    operands = tuple(None if array is None else in_native_dtype(array) for array in inputs)
    loaded = Attributes(_loaded(attributes))
    return KernelCase(operands, loaded, domain != OPENVINO, opset, output_count, element_limit)


def _outputs(op: GeneralOp, domain: str, case: KernelCase) -> tuple[Array, ...]:
    if op.keeps_shape:
        case.reserve(case.array(0).shape)
    outputs = _kernel(op.model_kernel_in(domain))(case)
    arrays = tuple(map(np.asarray, outputs if isinstance(outputs, tuple) else (outputs,)))
    for array in arrays:
        case.reserve(array.shape)
    return arrays


def _loaded(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    loaded = {name: value.load() for name, value in attributes.items() if isinstance(value, Constant)}
    if any(array is None for array in loaded.values()):
        raise UnsupportedCase("the values of a tensor are missing")
    return {**attributes, **loaded} if loaded else attributes


@cache
def _kernel(text: str) -> Kernel:
    name, argument = _name_and_argument(text)
    module_name, _, function_name = name.partition(".")
    function: Any = getattr(import_module(f"{__name__}.{module_name}"), function_name)
    return function if argument is None else function(argument)  # type: ignore[no-any-return]


@cache
def _name_and_argument(text: str) -> tuple[str, Any]:
    """Return the name of a kernel, or the name of its maker and the argument for it."""
    name, _, argument = text.rstrip(")").partition("(")
    if not argument:
        return name, None
    if argument.startswith("'"):
        return name, argument.strip("'")
    source: Any = np if argument.startswith("np.") else import_module(f"{__name__}.{name.partition('.')[0]}")
    return name, getattr(source, argument.removeprefix("np."))
