"""What a rule is, what it finds, and sentences that several rules share."""

import sys
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from typing import TypeAlias

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import EVERYTHING, Fact
from ir_scatter.core.diagnostics import Related, Severity
from ir_scatter.core.tensors import Constant
from ir_scatter.ops.spec import Role
from ir_scatter.ops.targets import BadIndices


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation, before code, severity, node and place are added.

    Attributes:
        message: what is, then what was expected.
        role: the input it is about.
        port: the documented name of a port without a role: a superfluous input, the output.
        port_index: the number of such a port.
        related: other places.
        is_tolerated: runtimes take it as meant, whatever the row says: a warning.
    """

    message: str
    role: Role | None = None
    port: str | None = None
    port_index: int | None = None
    related: tuple[Related, ...] = ()
    is_tolerated: bool = False


Findings: TypeAlias = Iterator[Finding]

OF_INDEX_FAULTS = frozenset(
    {Fact.OPERATOR, Fact.ATTRIBUTES, Fact.AXIS, Fact.INPUTS, Fact.SHAPES, Fact.INDEX_FAULTS}
)
"""What it takes to find faults of constant indices."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: one code.

    Attributes:
        code: "SCT203".
        name: "updates-shape-mismatch"; a defect of this name found by a reader belongs to it.
        severity: the row of an operator may lower an error to a warning.
        check: yields the violations of one scatter node; None if a reader finds them.
        documentation: what `explain` prints.
        reads: all that it looks at to tell whether anything is to be found. What it finds for one node
            it finds for all that are the same in that; if nothing is declared it is asked about each.
        is_legality: whether a node that breaks it has no documented result.
        mended_by: what `ir-scatter convert` must be told to mend it, "{type}" for the operator; "" if
            nothing, None if no conversion mends it.
        needs_row: whether it is asked only about nodes whose opset has the operator, of which there is a
            row (`ScatterNode.spec`).
    """

    code: str
    name: str
    severity: Severity
    check: Callable[[ScatterNode], Findings] | None = None
    documentation: str = ""
    reads: frozenset[Fact] = EVERYTHING
    is_legality: bool = True
    mended_by: str | None = None
    needs_row: bool = True


def rule(
    code: str,
    name: str,
    severity: Severity = Severity.ERROR,
    *,
    reads: Set[Fact] = EVERYTHING,
    is_legality: bool = True,
    mended_by: str | None = None,
    needs_row: bool = True,
) -> Callable[[Callable[[ScatterNode], Findings]], Rule]:
    """Make a check of scatter nodes a rule, which the docstring of its module documents."""

    def make(check: Callable[[ScatterNode], Findings]) -> Rule:
        text = (sys.modules[check.__module__].__doc__ or "").strip()
        return Rule(code, name, severity, check, text, frozenset(reads), is_legality, mended_by, needs_row)

    return make


def wrong_type(scatter: ScatterNode, role: Role) -> Findings:
    """Say that an input has an element type that the document does not allow, if it has."""
    operand = scatter.operand(role)
    if operand is None or operand.element_type is None:
        return
    if operand.element_type.name not in operand.port.element_types:
        shown = scatter.spec.show_type(operand.element_type)
        allowed = scatter.spec.show_types(operand.port)
        yield Finding(f"{operand.port.name} is {shown}, expected {allowed}", role=role)


def constant_note(scatter: ScatterNode, role: Role, bad: BadIndices | None = None) -> tuple[Related, ...]:
    """Name the constant that an input comes from, if there is one, and where a bad index stands."""
    operand = scatter.operand(role)
    constant = scatter.facts.origin(operand.value) if operand else None
    if operand is None or constant is None:
        return ()
    detail = ""
    position = None if bad is None else _position_in(constant, scatter, bad)
    if bad is not None and position is not None:
        detail = f": {bad.value} at {list(position)}, {bad.count} in all"
    kind = "Const" if scatter.spec.drops_attributes else "constant"
    message = f'{operand.port.name} comes from {kind} "{constant.name}"{detail}'
    return (Related(message, constant.location),)


def bad_indices(scatter: ScatterNode, bad: BadIndices, expected: str) -> Finding:
    """Say which index is wrong, where it stands, and how many there are."""
    name = scatter.indices.port.name if scatter.indices else "indices"
    where = f"{name}{list(bad.position)}" if bad.position else name
    more = "" if bad.count == 1 else f" ({bad.count} such values)"
    related = constant_note(scatter, Role.INDICES, bad)
    return Finding(f"{where} is {bad.value}, {expected}{more}", role=Role.INDICES, related=related)


def _position_in(constant: Constant, scatter: ScatterNode, bad: BadIndices) -> tuple[int, ...] | None:
    """Return where the first bad index stands in the constant that it comes from."""
    if constant.shape == scatter.indices_shape:
        return bad.position
    array = constant.load()
    if array is None:
        return None
    import numpy

    found = numpy.argwhere(array == bad.value)
    return tuple(int(number) for number in found[0]) if len(found) else None
