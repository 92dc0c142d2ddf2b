"""Diagnostics: findings with a code, a place and a sentence."""

from enum import StrEnum
from typing import NamedTuple

from ir_scatter.core.display import brief, record, short_repr
from ir_scatter.core.parameters import Parameter


class Severity(StrEnum):
    """The severity of a finding, the worst first."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """Return 0 for an error, 1 for a warning, 2 for a note."""
        return list(Severity).index(self)


@record()
class Location:
    """A place in a file; its path is as the caller wrote it."""

    path: str
    line: int | None = None
    """Line number from 1, as is `column`, which counts characters; None in ONNX, which has no lines."""
    column: int | None = None
    scope: str = ""
    """The path inside the model, "If_23:then_body/scatter"; "" for the file itself."""


class Span(NamedTuple):
    """A range of a file in lines and columns, counted as in `Location`; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class Excerpt(NamedTuple):
    """A line of a file, for messages; only a part of a long line, which starts at column `first`."""

    text: str
    first: int = 1
    goes_on: bool = False
    """Whether the line continues after the excerpt."""


class Side(StrEnum):
    """The kind of a part of a node: the node itself, an attribute, an input or an output."""

    NODE = "node"
    ATTRIBUTE = "attribute"
    INPUT = "input"
    OUTPUT = "output"


class Part(NamedTuple):
    """The faulty part of a node: the node itself, an attribute, an input or an output.

    `name` is the wrong detail: "type", "opset" or "id" of the node; "type", "shape" or "id" of a port. With
    `dim` it is one dimension of a shape. For a constant or a graph input, type and shape are the declared
    ones.
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
    """The version of its operator; None if the specification is unknown."""


@record(is_brief=True)
class Related:
    """A place that explains a finding, such as the constant that holds an illegal index."""

    message: str
    location: Location
    span: Span | None = None
    """The exact range of that place; None if the format has no lines."""


@record(is_brief=True)
class Diagnostic:
    """A broken rule at one place, or a note.

    Attributes:
        code: the code of the rule, "SCT203"; never renumbered or reused.
        message: "X is A, expected B".
        location: the node, or the place in the file.
        node: the node; None if the finding is about the file.
        port: the name of the port in the specification; `port_index` counts from 0.
        related: other places: a producer, a constant, a call.
        fixed_by: the arguments with which `convert` fixes it; None if it cannot.
        span: the range of the faulty attribute, port, dimension or edge; None if the format has no lines.
        label: a few words about the span; "" for the name of the port.
        help: how to fix it, in a sentence without a full stop.
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
    fixed_by: tuple[Parameter, ...] | None = None
    span: Span | None = None
    label: str = ""
    help: str = ""

    def __repr__(self) -> str:
        place = ":".join(str(part) for part in (self.location.path, self.location.line) if part is not None)
        return short_repr(self, f"{self.severity} {self.code} {brief(place, 80)}: {self.message}")
