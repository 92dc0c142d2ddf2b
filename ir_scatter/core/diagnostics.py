"""What is found: a code, a place and a sentence."""

from enum import StrEnum
from typing import NamedTuple

from ir_scatter.core.display import brief, record, short_repr


class Severity(StrEnum):
    """How much a finding matters, the worst first."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """Return 0 for an error, 1 for a warning, 2 for a note."""
        return list(Severity).index(self)


@record()
class Location:
    """A place in a file, whose path is as the caller named it."""

    path: str
    line: int | None = None
    """From 1, as the column, which counts characters; None where the format has no lines (ONNX)."""
    column: int | None = None
    scope: str = ""
    """The path inside the model, "If_23:then_body/scatter"; "" for the file itself."""


class Span(NamedTuple):
    """A stretch of a file, in lines and columns like those of `Location`; the end is behind it."""

    line: int
    column: int
    end_line: int
    end_column: int


class Excerpt(NamedTuple):
    """The line around a place in a file, of a long one a part, from the column `first` on."""

    text: str
    first: int = 1
    goes_on: bool = False
    """Whether the line has more behind it."""


class Side(StrEnum):
    """Where something of a node is written."""

    NODE = "node"
    ATTRIBUTE = "attribute"
    INPUT = "input"
    OUTPUT = "output"


class Part(NamedTuple):
    """What of a node is at fault: the node itself, an attribute, an input or an output.

    It is more exactly what `name` says: of the node its "type", "opset" or "id"; of a port its "type",
    "shape" or "id", or one dimension of the shape. An output of a constant or an input of the graph has the
    type and the shape that these declare.
    """

    side: Side
    number: int = 0
    name: str = ""
    dim: int | None = None


@record()
class NodeRef:
    """The node of a finding: its name, or that of its first output if it has none."""

    name: str
    type: str
    version: int | None
    """The since-version, None where no row of the table applies."""


@record(is_brief=True)
class Related:
    """A second place that a finding speaks of."""

    message: str
    location: Location
    span: Span | None = None
    """What it is about there; None where the format has no lines."""


@record(is_brief=True)
class Diagnostic:
    """One place where a rule is broken, or something worth knowing.

    Attributes:
        code: "SCT203"; never renumbered or reused.
        message: what is, then what was expected.
        location: the node, or the place in the file.
        node: None if the finding is about the file.
        port: its documented name; `port_index` counts from 0.
        related: other places: a producer, a constant, a call.
        fixed_by: the options with which `convert` mends it; None if it does not.
        span: what is wrong at the node: an attribute, a port, a dimension, an edge; None where the format has
            no lines.
        label: what is to be said of the span, in a few words; "" for the name of the port.
        help: how to mend it, in a sentence without a full stop.
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
    fixed_by: str | None = None
    span: Span | None = None
    label: str = ""
    help: str = ""

    def __repr__(self) -> str:
        place = ":".join(str(part) for part in (self.location.path, self.location.line) if part is not None)
        return short_repr(self, f"{self.severity} {self.code} {brief(place, 80)}: {self.message}")
