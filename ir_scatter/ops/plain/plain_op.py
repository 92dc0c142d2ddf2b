"""A plain operator: one row of the tables, and how it is run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ir_scatter.elements import ElementType, in_own_dtype
from ir_scatter.ops.plain.attributes import Attributes
from ir_scatter.ops.plain.case import Array, Case, Kernel, UnsupportedCase
from ir_scatter.ops.plain_shapes import SHAPE_KEEPERS, SHAPE_READERS

_REFUSALS = (ArithmeticError, LookupError, MemoryError, TypeError, ValueError)
"""What NumPy raises for shapes and values that no kernel thought of."""


@dataclass(frozen=True, slots=True)
class PlainOp:
    """What is known of a plain operator.

    Attributes:
        name: its type, as documented.
        kernel: computes it.
        attributes: every attribute that any version of it documents.
    """

    name: str
    kernel: Kernel
    attributes: tuple[str, ...] = ()

    @property
    def reads_shapes_only(self) -> bool:
        """Tell whether it needs the shapes of its inputs and no element.

        A view with stride 0 of one element, broadcast to the shape, is then input enough.
        """
        return self.name.lower() in SHAPE_READERS

    @property
    def keeps_shape(self) -> bool:
        """Tell whether its output has exactly the shape of input 0."""
        return self.name.lower() in SHAPE_KEEPERS


def compute(
    op: PlainOp,
    inputs: Sequence[Array | None],
    attributes: Mapping[str, Any],
    *,
    opset: int | None,
    output_types: Sequence[ElementType | None] = (),
    element_limit: int | None = None,
) -> tuple[Array, ...]:
    """Compute the outputs of a plain operator.

    Whole numbers wrap around in their own type. What a document calls undefined is refused, not
    guessed. Outputs have the element type of the data they are made of, in its own dtype; they may be
    read-only, and views of the inputs.

    Args:
        op: what `find` gave.
        inputs: in the order of the document; None for an optional one that was left out.
        attributes: as written; text in an IR, Python values in ONNX, an array for a tensor.
        opset: the opset that the node belongs to, None if it has none.
        output_types: one for each output, if it is known how many there are.
        element_limit: the most elements that one output may have; None without a limit.

    Raises:
        UnsupportedCase: if the case is illegal, undefined, unknown or larger than the limit.
    """
    try:
        with np.errstate(all="ignore"):
            case = Case(
                inputs=tuple(None if array is None else in_own_dtype(array) for array in inputs),
                attributes=Attributes(attributes, op.attributes),
                opset=opset,
                output_types=tuple(output_types),
                element_limit=element_limit,
            )
            return _outputs(op, case)
    except (UnsupportedCase, *_REFUSALS) as error:
        raise UnsupportedCase(f"{op.name}: {error}") from error


def _outputs(op: PlainOp, case: Case) -> tuple[Array, ...]:
    if op.keeps_shape:
        case.reserve(case.array(0).shape)
    found = op.kernel(case)
    arrays = tuple(map(np.asarray, found if isinstance(found, tuple) else (found,)))
    for array in arrays:
        case.reserve(array.shape)
    return arrays
