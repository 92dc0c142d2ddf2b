"""What is found: a code, a place and a sentence."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding matters, the worst first."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """Return 0 for an error, 1 for a warning, 2 for a note."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file.

    Attributes:
        path: as the caller named it.
        line: from 1; None where the format has no lines (ONNX).
        column: from 1, in characters.
        scope: the path inside the model, "If_23:then_body/scatter"; "" for the file itself.
    """

    path: str
    line: int | None = None
    column: int | None = None
    scope: str = ""


@dataclass(frozen=True, slots=True)
class NodeRef:
    """The node of a finding.

    Attributes:
        name: its name, or that of its first output if it has none.
        type: the operator's type as documented, "ScatterUpdate".
        version: the since-version, None where no row of the table applies.
    """

    name: str
    type: str
    version: int | None


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that a finding speaks of."""

    message: str
    location: Location


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One place where a rule is broken, or something worth knowing.

    Attributes:
        code: "SCT203"; never renumbered or reused.
        rule: the rule's name, "updates-shape-mismatch".
        severity: that of the operator's version.
        message: what is, then what was expected.
        location: where.
        node: None if the finding is about the file.
        port: its documented name.
        port_index: its number, from 0.
        related: other places: a producer, a constant, a call.
        mended_by: the options with which `convert` mends it; None if it does not.
    """

    code: str
    rule: str
    severity: Severity
    message: str
    location: Location
    node: NodeRef | None = None
    port: str | None = None
    port_index: int | None = None
    related: tuple[Related, ...] = ()
    mended_by: str | None = None
