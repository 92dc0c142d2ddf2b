"""Sentences and places that several rules share."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ir_scatter.core.constants import Constant
from ir_scatter.core.diagnostics import Related
from ir_scatter.core.element_types import ElementType
from ir_scatter.core.shapes import Shape
from ir_scatter.ops.spec import Port, Role
from ir_scatter.ops.targets import BadIndices
from ir_scatter.rules.rule import Finding

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


@dataclass(frozen=True, slots=True)
class StoredOperand:
    """What the file stores for an input, beside what is known to flow in."""

    port: Port
    stored_shape: Shape
    stored_type: ElementType | None
    shape: Shape
    element_type: ElementType | None


def operands(site: "Site") -> Iterator[StoredOperand]:
    """Yield the connected inputs with what the file stores for them."""
    for port in site.spec.ports:
        operand = site.operand(port.role)
        if operand is None:
            continue
        is_at_port = operand.input.stored_shape is not None or operand.input.stored_type is not None
        stored = operand.input if is_at_port else operand.value
        yield StoredOperand(
            port, stored.stored_shape, stored.stored_type, operand.shape, operand.element_type
        )


def wrong_type(site: "Site", role: Role) -> Iterator[Finding]:
    """Say that an input has an element type that the document does not allow, if it has."""
    operand = site.operand(role)
    if operand is None or operand.element_type is None:
        return
    if operand.element_type.name not in operand.port.element_types:
        shown = site.spec.show_type(operand.element_type)
        allowed = site.spec.show_types(operand.port)
        yield Finding(f"{operand.port.name} is {shown}, expected {allowed}", role=role)


def constant_note(site: "Site", role: Role, bad: BadIndices | None = None) -> tuple[Related, ...]:
    """Name the constant that an input comes from, if there is one, and where a bad index stands."""
    operand = site.operand(role)
    constant = site.facts.origin(operand.value) if operand else None
    if operand is None or constant is None:
        return ()
    detail = ""
    position = None if bad is None else _position_in(constant, site, bad)
    if bad is not None and position is not None:
        detail = f": {bad.value} at {list(position)}, {bad.count} in all"
    kind = "Const" if site.spec.drops_attributes else "constant"
    message = f'{operand.port.name} comes from {kind} "{constant.name}"{detail}'
    return (Related(message, constant.location),)


def bad_indices(site: "Site", bad: BadIndices, expected: str) -> Finding:
    """Say which index is wrong, where it stands, and how many there are."""
    operand = site.indices
    name = operand.port.name if operand else "indices"
    where = f"{name}{list(bad.position)}" if bad.position else name
    more = "" if bad.count == 1 else f" ({bad.count} such values)"
    return Finding(
        f"{where} is {bad.value}, {expected}{more}",
        role=Role.INDICES,
        related=constant_note(site, Role.INDICES, bad),
    )


def _position_in(constant: Constant, site: "Site", bad: BadIndices) -> tuple[int, ...] | None:
    """Return where the first bad index stands in the constant that it comes from."""
    if constant.shape == site.indices_shape:
        return bad.position
    array = constant.load()
    if array is None:
        return None
    import numpy

    found = numpy.argwhere(array == bad.value)
    return tuple(int(number) for number in found[0]) if len(found) else None
