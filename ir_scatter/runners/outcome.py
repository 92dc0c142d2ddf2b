"""What a runtime did with a model, and what it saw on the way."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from ir_scatter.core.model import Graph, Node
from ir_scatter.core.shapes import Shape

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array

NAMES_ARE_SCOPES = frozenset({"openvino-ir"})
"""Formats whose nodes are found by their scope alone: names in them are unique."""


OTHER_FORMAT = "format"
"""The reason of a runtime that cannot read files of the model's format, whatever they hold."""


class Status(StrEnum):
    """How a run ended; every one of these is a result."""

    OK = "ok"
    REFUSED = "refused"
    """It rejects the model, or these inputs, with its own words."""
    UNSUPPORTED = "unsupported"
    """It does not know an operator, an opset, a format or an element type of the model."""
    UNAVAILABLE = "unavailable"
    """It is not installed, or the device is missing."""
    CRASHED = "crashed"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class Tap:
    """A node whose inputs and first output are wanted.

    Attributes:
        scope: the path to it as `validate` prints it, "branch:then_body/scatter".
        output: the name of its first output's tensor, by which ONNX knows a node; "" in an IR.
        types: in ONNX the element types of the inputs, then of the output; "" where not known.
        shapes: in ONNX the shapes of the same; None where they are not known altogether.
        callers: the paths to the nodes that call the function which holds the node; only these calls
            are meant, as attributes may depend on the call.
    """

    scope: str
    output: str = ""
    types: tuple[str, ...] = ()
    shapes: tuple[tuple[int, ...] | None, ...] = ()
    callers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """One computation of a tapped node.

    Attributes:
        place: the number of the iteration in each loop around the node, the outermost first.
        inputs: by number; None for one that was left out.
        output: its first output.
        caller: for a node of a function the path to the node that called it.
    """

    place: tuple[int, ...]
    inputs: "tuple[Array | None, ...]"
    output: "Array"
    caller: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Tapped:
    """What came out of a tapped node.

    Attributes:
        tap: what was asked for.
        executions: one for each time it was computed; none if it never was.
        problem: why it could not be tapped; "" if it was.
    """

    tap: Tap
    executions: tuple[Execution, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What a runtime made of one or more nodes of the model.

    Attributes:
        name: what the runtime calls it.
        originals: the names of the model's nodes that went into it.
        kind: its type in the runtime, "ScatterUpdate" or "Reorder".
        kernel: the implementation, "jit_avx512_I32".
        precision: the element type that the kernel computes in.
        outputs: the element types of its outputs.
        microseconds: how long it took; None where that was not measured or it did not run.
    """

    name: str
    originals: tuple[str, ...]
    kind: str
    kernel: str
    precision: str
    outputs: tuple[str, ...]
    microseconds: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """How a run ended.

    Attributes:
        runner: its long name, "openvino:CPU".
        status: how it ended.
        message: the runtime's own words, shortened; "" if there is nothing to say.
        runs: the outputs by name, once for each repetition.
        tapped: one for each tap, in the order in which they were asked for.
        facts: what the runtime made of the nodes, if that was asked for.
        seconds: what reading, compiling and the first run took in the runtime's process.
        precision: what was asked for, "f32"; "model" where a runtime computes in the model's types.
        versions: of the packages involved.
        reason: "format" if it cannot read files of this format at all, None otherwise.
        remarks: what else there is to say: that its process died and was started again.
        tapped_runs: the outputs of runs with taps, by those who keep them beside `runs`; `tapped` then has
            the taps of all of these runs, one after the other.
    """

    runner: str
    status: Status
    message: str = ""
    runs: "tuple[Mapping[str, Array], ...]" = ()
    tapped: tuple[Tapped, ...] = ()
    facts: tuple[NodeFacts, ...] = ()
    seconds: float = 0.0
    precision: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    reason: str | None = None
    remarks: tuple[str, ...] = ()
    tapped_runs: "tuple[Mapping[str, Array], ...]" = ()

    @property
    def outputs(self) -> "Mapping[str, Array]":
        """Return the outputs of the first run by name; empty if there was none."""
        return self.runs[0] if self.runs else {}


def tap_of(node: Node, format: str) -> Tap:
    """Return what asks for a node.

    Args:
        node: of a model that was read.
        format: of that model.
    """
    if format in NAMES_ARE_SCOPES or not node.outputs:
        return Tap(node.scope)
    values = [*(input.value for input in node.inputs), node.outputs[0]]
    types = (value.element_type.name if value and value.element_type else "" for value in values)
    shapes = (_static(value.shape) if value else None for value in values)
    return Tap(node.scope, node.outputs[0].name, tuple(types), tuple(shapes), _callers(node))


def _callers(node: Node) -> tuple[str, ...]:
    """Return the paths to the nodes that call the function which holds a node."""
    graph: Graph | None = node.graph
    while graph is not None:
        if graph.calls:
            return tuple(call.location.scope for call in graph.calls if call.location is not None)
        graph = getattr(graph, "parent", None)
    return ()


def _static(shape: Shape) -> tuple[int, ...] | None:
    """Return a shape if all of it is known."""
    if shape is None:
        return None
    known = tuple(dim for dim in shape if isinstance(dim, int))
    return known if len(known) == len(shape) else None
