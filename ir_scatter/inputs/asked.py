"""One node of a run: what is known of its inputs and of its outputs."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ir_scatter.analysis.interpreter import Step
from ir_scatter.core.shapes import Bounds, Dim, Shape
from ir_scatter.inputs.cells import Cell, Shapeless, Traced, cell_of
from ir_scatter.ops.attributes import Attributes
from ir_scatter.ops.constraints import Axis, Meaning
from ir_scatter.ops.general import constraints_of, output_shapes
from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.ops.general_shapes import ShapeCase

_MOST_NUMBERS = 64
_NAMING = frozenset({Meaning.TARGET, Meaning.RESHAPED})
"""What an input says that names the shape of the output."""


class Asked:
    """A node of a run.

    Attributes:
        step: the node.
        cells: its inputs.
        arrays: the arrays of its inputs; None for one that was left out or has no known shape.
        symbols: the sizes of dimensions by their symbols.
    """

    def __init__(self, step: Step, cells: Sequence[Cell | None], symbols: Mapping[str, int]) -> None:
        self.step, self.cells, self.symbols = step, cells, symbols
        self.arrays: list[Array | None] = [cell.array if isinstance(cell, Traced) else None for cell in cells]

    @cached_property
    def attributes(self) -> Mapping[str, Any]:
        """Return what is written."""
        return self.step.node.attributes

    def shape(self, port: int) -> Shape:
        """Return what is known of the shape of an input, None if nothing is."""
        cell = self.cells[port] if -len(self.cells) <= port < len(self.cells) else None
        return cell.array.shape if isinstance(cell, Traced) else cell.shape if cell is not None else None

    def rank(self, port: int) -> int | None:
        """Return the rank of an input."""
        shape = self.shape(port)
        return None if shape is None else len(shape)

    def size(self, port: int, axis: int | None) -> int | None:
        """Return the size of a dimension of an input; with None for the dimension the least of all."""
        shape = self.shape(port)
        if not shape:
            return None
        if axis is None:
            return min((dim if isinstance(dim, int) else 1 for dim in shape), default=None)
        return _at(shape, axis)

    def numbers(self, port: int | None) -> list[int] | None:
        """Return the whole numbers of an input; None if they are not known, or too many."""
        cell = self.cells[port] if port is not None and -len(self.cells) <= port < len(self.cells) else None
        if not isinstance(cell, Traced) or (cell.is_opaque and cell.terms is None):
            return None
        array = self.arrays[port] if port is not None else None
        if array is None or array.size > _MOST_NUMBERS or array.dtype.kind not in "iu":
            return None
        return [int(number) for number in array.reshape(-1)]

    def axis(self, axis: Axis) -> int | None:
        """Return the number of a dimension; None if it is not known."""
        if axis.port is not None:
            found = self.numbers(axis.port)
            return found[0] if found else None
        if axis.attribute is None:
            return axis.default
        try:
            return int(self.attributes.get(axis.attribute, axis.default))
        except (TypeError, ValueError):
            return None

    def integers(self, name: str) -> list[int] | None:
        """Return an attribute that is a list of whole numbers, None if there is none."""
        value = self.attributes.get(name)
        try:
            return None if value is None else Attributes(self.attributes).integers(name, ())
        except (TypeError, ValueError):
            return None

    @cached_property
    def declared(self) -> list[Shape]:
        """Return what the model says of the shapes of the outputs."""
        return [self._resolved(output.shape) for output in self.step.node.outputs]

    def output_size(self, axis: int) -> int | None:
        """Return the size of a dimension of the first output, as the model says it."""
        shape = self.declared[0] if self.declared else None
        return None if shape is None else _at(shape, axis)

    def output_rank(self) -> int | None:
        """Return the rank of the first output, as the model says it."""
        shape = self.declared[0] if self.declared else None
        return None if shape is None else len(shape)

    def unknown_outputs(self) -> list[Cell]:
        """Return outputs of which the numbers are not known.

        Raises:
            ShapesDiffer: the inputs do not fit each other.
        """
        shapes = [None if array is None else array.shape for array in self.arrays]
        node, case = self.step.node, ShapeCase(shapes, self.numbers, self.attributes)
        computed = output_shapes(node.domain, node.type, case)
        return self.outputs_of_shapes(self.named_shapes() if computed is None else computed)

    def outputs_of_shapes(self, computed: Sequence["tuple[int, ...] | None"] = ()) -> list[Cell]:
        """Return outputs of which nothing is known but shapes, and for the rest what the model says."""
        values = self.step.node.outputs
        found = []
        for number in range(len(self.step.outputs)):
            declared = self.declared[number] if number < len(values) else None
            type = values[number].element_type if number < len(values) else None
            known = computed[number] if number < len(computed) else None
            found.append(cell_of(declared if known is None else known, type))
        return found

    def named_shapes(self) -> list[tuple[int, ...] | None]:
        """Return the shape of the output that an input names, if one does."""
        for need in constraints_of(self.step.node.domain, self.step.node.type):
            if need.meaning in _NAMING and need.port < len(self.cells):
                numbers = self.numbers(need.port)
                if numbers is not None and min(numbers, default=1) > 0:
                    return [tuple(numbers)]
        return []

    def _resolved(self, shape: Shape) -> Shape:
        return None if shape is None else tuple(map(self._resolved_dim, shape))

    def _resolved_dim(self, dim: Dim) -> Dim:
        if isinstance(dim, Bounds) and dim.symbol is not None:
            return self.symbols.get(dim.symbol, dim)
        return dim


def is_unclear(cell: Cell | None) -> bool:
    """Tell whether the numbers of an input are needed and not known."""
    if isinstance(cell, Shapeless):
        return True
    return cell is not None and cell.is_opaque and (cell.terms is None or not bool(np.all(cell.terms)))


def _at(shape: Sequence[Dim], axis: int) -> int | None:
    dim = shape[axis] if -len(shape) <= axis < len(shape) else None
    return dim if isinstance(dim, int) else None
