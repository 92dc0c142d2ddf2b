"""What a rule is, what it finds, and sentences that several rules share."""

import re
import sys
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, replace
from typing import TypeAlias

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import EVERYTHING, Fact
from ir_scatter.core.diagnostics import Related, Severity
from ir_scatter.ops.index_values import BadIndices
from ir_scatter.ops.spec import Role


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation, before code, severity, node and place are added: what is, then what was expected.

    It is about the input of a role, or a port without one: a superfluous input, the output. What runtimes
    take as meant (`is_tolerated`) is a warning, whatever the row says.
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
OF_STORED = frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES, Fact.TYPES, Fact.STORED})
"""What it takes to hold what a file stores against what is computed."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: one code. A check of scatter nodes that it decorates becomes it.

    Attributes:
        code: "SCT203".
        name: "updates-shape-mismatch"; a defect of this name found by a reader belongs to it.
        severity: the row of an operator may lower an error to a warning.
        check: yields the violations of one scatter node; None if a reader finds them.
        text: what documents it; of a check the docstring of its module.
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
    severity: Severity = Severity.ERROR
    check: Callable[[ScatterNode], Findings] | None = None
    text: str = ""
    reads: Set[Fact] = EVERYTHING
    is_legality: bool = True
    mended_by: str | None = None
    needs_row: bool = True

    def __call__(self, check: Callable[[ScatterNode], Findings]) -> "Rule":
        text = sys.modules[check.__module__].__doc__ or ""
        return replace(self, check=check, text=text, reads=frozenset(self.reads))

    @property
    def documentation(self) -> str:
        """What `explain` prints."""
        return re.sub(r"\n+(?=(Why|Applies to|Runtimes|Example|Fix): )", "\n\n", self.text.strip())


def wrong_type(scatter: ScatterNode, role: Role) -> Findings:
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
    if bad is not None and constant.shape == scatter.indices_shape:
        detail = f": {bad.value} at {list(bad.position)}, {bad.count} in all"
    elif bad is not None and (array := constant.load()) is not None:
        import numpy

        for position in numpy.argwhere(array == bad.value)[:1].tolist():
            detail = f": {bad.value} at {position}, {bad.count} in all"
    kind = "Const" if scatter.spec.drops_attributes else "constant"
    message = f'{operand.port.name} comes from {kind} "{constant.name}"{detail}'
    return (Related(message, constant.location),)


def bad_indices(scatter: ScatterNode, bad: BadIndices, expected: str) -> Finding:
    name = scatter.indices.port.name if scatter.indices else "indices"
    where = f"{name}{list(bad.position)}" if bad.position else name
    more = "" if bad.count == 1 else f" ({bad.count} such values)"
    related = constant_note(scatter, Role.INDICES, bad)
    return Finding(f"{where} is {bad.value}, {expected}{more}", role=Role.INDICES, related=related)
