"""What a rule is, and what it gives."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ir_scatter.diagnostics import Related, Severity

if TYPE_CHECKING:
    from ir_scatter.ops.spec import Role
    from ir_scatter.site import Site


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation, before the engine adds code, severity, node and place.

    Attributes:
        message: what is, then what was expected.
        role: the input it is about.
        port: the documented name of a port without a role: a superfluous input, the output.
        port_index: the number of such a port.
        related: other places.
        is_tolerated: runtimes take it as meant, whatever the row says: a warning.
    """

    message: str
    role: "Role | None" = None
    port: str | None = None
    port_index: int | None = None
    related: tuple[Related, ...] = ()
    is_tolerated: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: one file, one code.

    Attributes:
        code: "SCT203".
        name: "updates-shape-mismatch"; a defect of this name found by a reader belongs to it.
        severity: the row of an operator may lower an error to a warning.
        check: yields the violations of one scatter node; None if a reader finds them.
        documentation: the docstring of its module.
        reads_values: whether it looks at the numbers in indices, so that two nodes that differ in
            nothing else may differ in its findings.
        mended_by: what `ir-scatter convert` must be told to mend it, "{type}" for the operator; "" if
            nothing, None if no conversion mends it.
    """

    code: str
    name: str
    severity: Severity
    check: "Callable[[Site], Iterator[Finding]] | None" = None
    documentation: str = ""
    reads_values: bool = False
    mended_by: str | None = None
