"""What is found: a code, a place and a sentence."""

from dataclasses import dataclass
from enum import StrEnum

from ir_scatter.core.display import brief, record_html, record_repr, short_repr, shorten_message


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
    """A place in a file, whose path is as the caller named it."""

    __repr__, _repr_html_ = record_repr, record_html

    path: str
    line: int | None = None
    """From 1, as the column, which counts characters; None where the format has no lines (ONNX)."""
    column: int | None = None
    scope: str = ""
    """The path inside the model, "If_23:then_body/scatter"; "" for the file itself."""


@dataclass(frozen=True, slots=True)
class NodeRef:
    """The node of a finding: its name, or that of its first output if it has none."""

    __repr__, _repr_html_ = record_repr, record_html

    name: str
    type: str
    version: int | None
    """The since-version, None where no row of the table applies."""


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that a finding speaks of."""

    __repr__, _repr_html_ = record_repr, record_html

    message: str
    location: Location

    def __post_init__(self) -> None:
        shorten_message(self)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One place where a rule is broken, or something worth knowing.

    Attributes:
        code: "SCT203"; never renumbered or reused.
        message: what is, then what was expected.
        node: None if the finding is about the file.
        port: its documented name; `port_index` counts from 0.
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

    def __repr__(self) -> str:
        place = ":".join(str(part) for part in (self.location.path, self.location.line) if part is not None)
        return short_repr(self, f"{self.severity} {self.code} {brief(place, 80)}: {self.message}")

    _repr_html_ = record_html

    def __post_init__(self) -> None:
        shorten_message(self)
