"""The interface of a file format: `Format` hides everything that only one format has."""

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
    """Functions that tell a format about operators.

    Attributes:
        outputs: returns type and shape of the first outputs of a node, from those of its inputs; None for
            unknown ones.
        problem: returns why a runtime would refuse the node; None if it would not.
    """

    outputs: Callable[[OperatorUse], Sequence[tuple[ElementType | None, Shape]]]
    problem: Callable[[OperatorUse], object | None]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a model is read.

    Attributes:
        types: the types of nodes that the caller needs; None for all.
        scatter_types: those of `types` with a single output that has the type and shape of the first input.
        operators: facts about the other operators of an IR.
        appended: bytes that the weights of an IR have beyond those in its file.
        has_folder: False if the bytes came from a stream, so that there are no files beside them.
        input_shapes: shapes of the model's inputs, by any of their names.
        shapes: output shapes of nodes that a runtime inferred, by scope of the node.
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
    """A file of weights that belongs to a model, links resolved.

    Attributes:
        location: the path relative to the folder of the model: "sub/../weights.bin".
        identity: changes if another file replaces this one.
        size: its number of bytes when the model was read; new bytes are appended after them.
        problem: the consequence for the model if the file is missing; None if it exists.
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
    """The edits of the original text, without its byte order mark; empty for a binary format."""
    remark: str = ""
    """A sentence about any other change that was necessary, "" for none."""


@dataclass(frozen=True, slots=True, eq=False)
class OneInput:
    """An input of a node to be written: a constant, or a model input declared with a shape.

    The shape None means that of the array.
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
    """A node with its inputs, to be written into a model of its own, or beside other such nodes.

    Attributes:
        opset: the word of an IR or the number of an ONNX model.
        inputs: in the order of the specification, None for a missing one.
        element_type: that of the output.
        shape: that of the output.
        prefix: the beginning of the names of the node and its output.
        iterations: in an IR, the number of iterations of a loop whose body holds the node; every iteration
            has the same inputs. 0 for no loop.
        before: types of general operators between the first input and the node, which change neither shape
            nor elements.
        keeps_state: whether the first input is the initial value of a state; the node reads the state, which
            stays unchanged.
        in_function: in ONNX, whether the node is in a local function, which is called once.
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
    """The nodes that replace a node, in the format's own representation and in order.

    Attributes:
        names: names that the messages introduce; the writer renames those that exist in the model already.
        gone: outputs that no longer exist; no other node reads them.
    """

    nodes: Sequence[Any]
    names: Sequence[str]
    gone: Sequence[str]


@dataclass(frozen=True, eq=False)
class OpsetMove:
    """A change of a model's opset, and the node replacements for it, by the graph and handle of the node."""

    opset: int
    changes: Mapping[tuple[Any, int], NewNodes]


class Format(Protocol):
    """A file format; `name` identifies it in models and reports, `title` is for sentences."""

    name: str
    title: str
    suffix: str

    def sniff(self, head: bytes) -> bool:
        """Return whether a file that begins with these bytes has this format.

        The name of the file does not matter.
        """

    def read(self, path: str, data: bytes, options: ReadOptions) -> Model:
        """Read a model; findings print `path` unchanged.

        Raises:
            UnreadableModel: with the reason and the place.
        """

    def dataflow(self, model: Model) -> "Dataflow":
        """Return the dataflow of a model."""

    def write(self, model: Model, patches: "Sequence[Patch]", move: OpsetMove | None = None) -> Written:
        """Replace nodes in a copy of a model, with at most one patch per node; nothing else changes.

        `move` changes the opset of the copy, if the format has one for the whole file, and replaces nodes
        that need it.

        Raises:
            NotEditable: the text of the model cannot be edited safely.
        """

    def files_beside(self, model: Model, path: Path) -> "Sequence[FileBeside]":
        """Return the weight files of a model, with the locations that a copy of it at `path` would use.

        Raises:
            UnreadableModel: a file is outside of the model's folder, or has the same location as another.
        """

    def diff(self, model: Model, patches: "Sequence[Patch]", path: str) -> Iterator[str]:
        """Yield a readable diff of the lines that patches change, each with its line break.

        Raises:
            NotEditable: the text of the model cannot be edited safely.
        """

    def nodes(self, nodes: Sequence[OneNode]) -> Mapping[str, bytes]:
        """Return the files of a new model of independent nodes; in ONNX these have one opset.

        The keys are the suffixes of the files' names, that of the model first.

        Raises:
            NotEditable: a constant has a type that the format lacks.
            TypeError: an attribute has a type that the format lacks.
        """
