"""What a file format offers: all that is particular to one stands behind `Format`."""

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
    """What formats must know of operators.

    Attributes:
        outputs: gives type and shape of the first outputs of a use, as far as they are certain.
        problem: tells what a runtime would refuse of it.
    """

    outputs: Callable[[OperatorUse], Sequence[tuple[ElementType | None, Shape]]]
    problem: Callable[[OperatorUse], object | None]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a model is read.

    Attributes:
        types: the types of nodes the caller is interested in; None for all.
        scatter_types: of them: those whose one output has the type and the shape of their first input.
        operators: what there is to know of other operators of an IR.
        has_folder: False if the bytes came from a stream, so that there is nothing beside them.
        input_shapes: shapes of the model's inputs, by any of their names.
        shapes: shapes of the outputs of nodes as a runtime propagated them, by scope.
    """

    types: frozenset[str] | None = None
    scatter_types: frozenset[str] = frozenset()
    operators: Operators | None = None
    has_folder: bool = True
    input_shapes: Mapping[str, Shape] = field(default_factory=dict)
    shapes: Mapping[str, tuple[Shape, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileBeside:
    """A file of weights that belongs to a model, links resolved.

    Attributes:
        location: how it is named from the folder of the model: "sub/../weights.bin".
        identity: what tells it from a file that is put in its place.
        size: its bytes when the model was read, where new ones go behind them.
        problem: what there is to say of a model without the file; None if it is there.
    """

    path: Path
    location: str
    identity: Identity = field(default=None, compare=False)
    size: int | None = field(default=None, compare=False)
    problem: str | None = None


class Written(NamedTuple):
    """A model with patches in it."""

    content: bytes
    appended: bytes = b""
    """What goes behind the end of a copy of its weights."""
    edits: "tuple[Edit, ...]" = ()
    """Of the text as it was read, without a byte order mark, where the format is text."""
    remark: str = ""
    """What else had to change, in a sentence."""


@dataclass(frozen=True, slots=True, eq=False)
class OneInput:
    """An input of a node that is written, constant or declared with a shape, None being that of the array."""

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
    """A node and what feeds it: in a model of its own for whoever mends a runtime, or one beside others.

    The inputs stand in the order of the document, None for one that was left out; the element type and
    the shape are those of the output. The prefix is that of the names of the node and its output. In an IR it
    may stand in the body of a loop with some iterations, all of which are given the same; 0 for no loop.
    General operators of the types `before` stand between the first input and the node, and change neither
    shape nor elements. With `keeps_state` the first input is the initial value of a state, which the node
    reads, and which is written as it was read.
    In ONNX it may be in a function of the model that is called once.
    """

    type: str
    opset: str | int
    """An IR's word or an ONNX model's number."""
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
    """What takes the place of a node as messages of the format, in order.

    Their new `names` may be taken; nobody reads the outputs that are `gone`.
    """

    nodes: Sequence[Any]
    names: Sequence[str]
    gone: Sequence[str]


@dataclass(frozen=True, eq=False)
class OpsetMove:
    """A model's way to another opset, and what nodes become, by the index of their graph and their handle."""

    opset: int
    changes: Mapping[tuple[Any, int], NewNodes]


class Format(Protocol):
    """A file format: its name in models and reports, and what people call it."""

    name: str
    title: str
    suffix: str

    def sniff(self, head: bytes) -> bool:
        """Tell whether a file that begins so is of this format, whatever it is called."""

    def read(self, path: str, data: bytes, options: ReadOptions) -> Model:
        """Read a model; `path` is as it is to be named in findings.

        Raises:
            UnreadableModel: with the reason and the place.
        """

    def dataflow(self, model: Model) -> "Dataflow":
        """Return how the values of a model flow."""

    def write(self, model: Model, patches: "Sequence[Patch]", move: OpsetMove | None = None) -> Written:
        """Write patches, each of another node, into a copy of a model, in which nothing else changes.

        `move` changes the opset of the copy, where the format has one for the whole file, and other nodes.

        Raises:
            NotEditable: the model is written in a way that cannot be edited safely.
        """

    def files_beside(self, model: Model, path: Path) -> "Sequence[FileBeside]":
        """Return the files that a model has its weights in, as a copy of it at a path would name them.

        Raises:
            UnreadableModel: one is outside of the model's folder, or not to be told from another.
        """

    def diff(self, model: Model, patches: "Sequence[Patch]", path: str) -> Iterator[str]:
        """Yield the lines that patches change, as people read them, each with its line break.

        Raises:
            NotEditable: the model is written in a way that cannot be edited safely.
        """

    def nodes(self, nodes: Sequence[OneNode]) -> Mapping[str, bytes]:
        """Return the files of a model with nodes that know nothing of each other, of one opset in ONNX.

        The files go by the ends of their names, that of the model first.

        Raises:
            NotEditable: a constant is of a type that the format has not.
            TypeError: an attribute is.
        """
