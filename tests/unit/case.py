"""One use of one operator: arrays by role, and attributes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ir_scatter.core.arrays import Array
from ir_scatter.core.element_types import ElementType
from ir_scatter.ops.spec import Kind, Layout, OpSpec, Reduction, Role


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Inputs and attributes for one operator.

    Attributes:
        spec: the row.
        data: the input of role data.
        indices: None where they are optional and left out.
        updates: the input of role updates.
        axis: as an attribute or input says it, maybe negative; None where the operator has none.
        attributes: those that are written, by their documented names, without the axis.
        element_type: that of data and updates.
        index_type: that of indices.
        reduction: how updates meet old values.
        broken: the rule that it breaks on purpose; None if it is legal.
    """

    spec: OpSpec
    data: Array
    indices: Array | None
    updates: Array
    axis: int | None
    attributes: Mapping[str, Any]
    element_type: ElementType
    index_type: ElementType
    reduction: Reduction
    broken: str | None = None

    @property
    def operator(self) -> str:
        """Return type and version."""
        return str(self.spec.key)

    @property
    def axis_from_front(self) -> int:
        """Return the axis counted from 0; 0 where there is none."""
        return 0 if self.axis is None else self.axis % max(self.data.ndim, 1)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `ir_scatter.evaluate` but the operator."""
        given = {Role.DATA: self.data, Role.INDICES: self.indices, Role.UPDATES: self.updates}
        found: dict[str, Any] = {role.value: array for role, array in given.items()}
        if self.axis is not None:
            found[Role.AXIS.value] = self.axis
        return {**found, **self.attributes}

    @property
    def limits(self) -> list[int | None]:
        """Return the sizes that indices count on, one for each column; [None] where any is legal."""
        shape, layout = self.data.shape, self.spec.layout
        if layout is Layout.TUPLES:
            return [] if self.indices is None else list(shape[: self.indices.shape[-1]])
        size = shape[self.axis_from_front]
        if layout is not Layout.SEQUENCE:
            return [size]
        words = [row for row in self.spec.attributes if row.kind is Kind.WORD]
        is_linear = all(self.attributes.get(row.name, row.default) == row.default for row in words)
        return [size - self.updates.shape[self.axis_from_front] + 1 if is_linear else None]
