"""The interface of a file format: `Format`, with the types of its arguments and results."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ir_scatter.core.atomic_write import Identity
from ir_scatter.core.element_types import ElementType
from ir_scatter.core.model import Model, OperatorUse
from ir_scatter.core.shapes import Shape

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array
    from ir_scatter.core.dataflow import Dataflow
    from ir_scatter.core.fragment import Patch
    from ir_scatter.formats.text_edits import Edit


IR = "openvino-ir"
ONNX_FORMAT = "onnx"


@dataclass(frozen=True, slots=True)
class Operators:
    """Functions that know the general operators. Callers pass them, since `formats` does not import `ops`.

    Attributes:
        outputs: infers (element type, shape) of a node's first outputs from those of its inputs; None for
            unknown ones.
        problem: returns the reason why a runtime would refuse the node; None if the node is legal.
    """

    outputs: Callable[[OperatorUse], Sequence[tuple[ElementType | None, Shape]]]
    problem: Callable[[OperatorUse], object | None]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options for reading a model.

    Attributes:
        types: the operator types that the caller needs; None for all.
        scatter_types: the scatter operators among `types`. Their single output is like the first input.
        operators: functions that know the general operators, for an IR.
        appended: bytes that follow those of the IR's `.bin`, for a model that is not written yet.
        has_folder: False if the model came from a stream, so that it has no external files.
        input_shapes: shapes that replace those of the model's inputs, by any of their names.
        shapes: output shapes that a runtime inferred, by scope of the node.
    """

    types: frozenset[str] | None = None
    scatter_types: frozenset[str] = frozenset()
    operators: Operators | None = None
    has_folder: bool = True
    appended: bytes = b""
    input_shapes: Mapping[str, Shape] = field(default_factory=dict)
    shapes: Mapping[str, tuple[Shape, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileBeside:
    """A weight file of a model, with symbolic links resolved.

    Attributes:
        location: the path relative to the folder of the model: "sub/../weights.bin".
        identity: changes if another file replaces this one.
        size: number of bytes when the model was read; new constants are appended at this offset.
        problem: None if the file exists. For a missing file a sentence about the consequence for the model,
            or "" if the model does not need the file.
    """

    path: Path
    location: str
    identity: Identity = field(default=None, compare=False)
    size: int | None = field(default=None, compare=False)
    problem: str | None = None


class Written(NamedTuple):
    """A model file after patches were applied."""

    content: bytes
    appended: bytes = b""
    """Bytes to append to a copy of the model's weights."""
    edits: "tuple[Edit, ...]" = ()
    """Edits of the original text, relative to the end of its byte order mark. Empty for a binary format."""
    remark: str = ""
    """A sentence about changes outside of the patched nodes; "" without such changes."""


@dataclass(frozen=True, slots=True, eq=False)
class OneInput:
    """An input of a node in a new model: a constant, or a model input.

    `shape` is the declared shape of the model input; None means the shape of the array.
    """

    name: str
    element_type: ElementType
    array: "Array"
    is_constant: bool
    shape: Shape = None

    @property
    def declared(self) -> Shape:
        return self.array.shape if self.shape is None else self.shape


@dataclass(frozen=True, slots=True, eq=False)
class OneNode:
    """A node of a new model, with its inputs.

    Attributes:
        opset: "opset3" in an IR, a number in ONNX.
        inputs: in the order of the specification; None for a missing one.
        element_type: element type of the output.
        shape: shape of the output.
        prefix: prefix of the names of the node and its output.
        iterations: number of iterations of a Loop around the node, whose inputs do not change between
            iterations (IR only). 0 means no Loop.
        before: types of general operators between the first input and the node. They change neither shape
            nor elements.
        keeps_state: whether the first input initialises a state variable that the node reads and that never
            changes (ReadValue and Assign in an IR).
        in_function: whether the node is in a local function with a single call (ONNX only).
    """

    type: str
    opset: str | int
    attributes: Mapping[str, Any]
    inputs: Sequence[OneInput | None]
    element_type: ElementType
    shape: Shape
    prefix: str = ""
    iterations: int = 0
    before: tuple[str, ...] = ()
    keeps_state: bool = False
    in_function: bool = False


class NewNodes(NamedTuple):
    """The nodes that replace a node, in the format's own representation and in topological order.

    Attributes:
        names: new names in `nodes`. The writer renames those that the model already uses.
        gone: names of outputs that are removed; no other node reads them.
    """

    nodes: Sequence[Any]
    names: Sequence[str]
    gone: Sequence[str]


@dataclass(frozen=True, eq=False)
class OpsetMove:
    """A new opset for a model, and the replacements of nodes for it, by (graph, handle) of the node."""

    opset: int
    changes: Mapping[tuple[Any, int], NewNodes]


class Format(Protocol):
    """A file format. `name` identifies it in models and reports, `title` is its name in sentences."""

    name: str
    title: str
    suffix: str

    def sniff(self, head: bytes) -> bool:
        """Return whether a file that begins with these bytes has this format."""

    def read(self, path: str, data: bytes, options: ReadOptions) -> Model:
        """Read a model. Diagnostics show `path` unchanged.

        Raises:
            UnreadableModel: with the reason and the place.
        """

    def dataflow(self, model: Model) -> "Dataflow":
        """Return the dataflow of a model: the producer and the consumers of each value."""

    def write(self, model: Model, patches: "Sequence[Patch]", move: OpsetMove | None = None) -> Written:
        """Replace nodes in a copy of a model, with at most one patch for each node.

        Everything else is copied unchanged. `move` changes the opset of the whole file and replaces the nodes
        that need it; an IR has no such opset.

        Raises:
            NotEditable: the text of the model cannot be edited safely.
        """

    def files_beside(self, model: Model, path: Path) -> "Sequence[FileBeside]":
        """Return the weight files of a model, with the locations for a copy of the model at `path`.

        Raises:
            UnreadableModel: a file is outside of the model's folder, or two files have the same location.
        """

    def diff(self, model: Model, patches: "Sequence[Patch]", path: str) -> Iterator[str]:
        """Yield a diff of the lines that patches change; each line ends with a line break.

        Raises:
            NotEditable: the text of the model cannot be edited safely.
        """

    def nodes(self, nodes: Sequence[OneNode]) -> Mapping[str, bytes]:
        """Return the files of a new model of independent nodes, by file suffix; the model file comes first.

        In ONNX all nodes have the same opset.

        Raises:
            NotEditable: a constant has an element type that the format lacks.
            TypeError: an attribute has a type that the format lacks.
        """
