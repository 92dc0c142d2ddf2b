"""What a rule is, and what it gives."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import EVERYTHING, Fact
from ir_scatter.core.diagnostics import Related, Severity

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site
    from ir_scatter.ops.spec import Role


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
        reads: all that it looks at to tell whether anything is to be found. Of nodes that are the same
            in that, those without findings are shown to it once; a rule that declares nothing is
            asked about each node.
        mended_by: what `ir-scatter convert` must be told to mend it, "{type}" for the operator; "" if
            nothing, None if no conversion mends it.
        needs_row: whether it is asked only about nodes whose opset has the operator, of which there is a
            row (`Site.spec`).
    """

    code: str
    name: str
    severity: Severity
    check: "Callable[[Site], Iterator[Finding]] | None" = None
    documentation: str = ""
    reads: frozenset[Fact] = EVERYTHING
    mended_by: str | None = None
    needs_row: bool = True
