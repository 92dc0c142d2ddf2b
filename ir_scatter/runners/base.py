"""What every runner is, what it is asked, and what came of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ir_scatter.core.model import Graph, Node
from ir_scatter.core.shapes import static

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

PRECISIONS = ("default", "f16", "bf16", "f32")
TIME_LIMIT = 300.0
TAP_MEMORY = 1 << 30
MODEL_PRECISION = "model"
"""Where a runtime computes in the types of the model and nothing else can be asked for."""

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


class Tap(NamedTuple):
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


def tap_of(node: Node, format: str) -> Tap:
    """Return what asks for a node of a model that was read from a format."""
    if format in NAMES_ARE_SCOPES or not node.outputs:
        return Tap(node.scope)
    values = [*(input.value for input in node.inputs), node.outputs[0]]
    types = tuple(value.element_type.name if value and value.element_type else "" for value in values)
    shapes = tuple(static(value.shape) if value else None for value in values)
    callers: tuple[str, ...] = ()
    graph: Graph | None = node.graph
    while graph is not None and not callers:
        callers = tuple(call.location.scope for call in graph.calls)
        graph = getattr(graph, "parent", None)
    return Tap(node.scope, node.outputs[0].name, types, shapes, callers)


class RunRequest(NamedTuple):
    """What a runtime is asked to run.

    Attributes:
        model: the absolute path of the file.
        device: of a runtime that has several.
        precision: what it should compute in; "default" leaves that to the device.
        profile: whether to say what the runtime made of the nodes.
        taps: nodes whose inputs and output are wanted.
        repeat: how often to run it.
        tap_memory: bytes of tapped tensors that may be held at once.
        is_rest: whether other taps of the same run were answered before.
    """

    model: str
    device: str = ""
    precision: str = "f32"
    profile: bool = False
    taps: tuple[Tap, ...] = ()
    repeat: int = 1
    tap_memory: int = TAP_MEMORY
    is_rest: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """One computation of a tapped node: its inputs, None for one that was left out, and its first output."""

    place: tuple[int, ...]
    """The number of the iteration in each loop around the node, the outermost first."""
    inputs: "tuple[Array | None, ...]"
    output: "Array"
    caller: str = ""
    """For a node of a function the path to the node that called it."""


@dataclass(frozen=True, slots=True, eq=False)
class Tapped:
    """What came out of a tapped node, once for each time it was computed."""

    tap: Tap
    executions: tuple[Execution, ...] = ()
    problem: str = ""
    """Why it could not be tapped; "" if it was."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What a runtime made of one or more nodes of the model, in its own words."""

    name: str
    originals: tuple[str, ...]
    """The names of the model's nodes that went into it."""
    kind: str
    """Its type in the runtime, "ScatterUpdate" or "Reorder"."""
    kernel: str
    """The implementation, "jit_avx512_I32"."""
    precision: str
    """The element type that the kernel computes in; `outputs` are those of its outputs."""
    outputs: tuple[str, ...]
    microseconds: float | None
    """None where it was not measured or did not run."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """How a run ended.

    Attributes:
        runner: its long name, "openvino:CPU".
        message: the runtime's own words, shortened; "" if there is nothing to say.
        runs: the outputs by name, once for each repetition.
        tapped: one for each tap, in the order in which they were asked for.
        facts: what the runtime made of the nodes, if that was asked for.
        seconds: what reading, compiling and the first run took in the runtime's process.
        precision: what was asked for, "f32"; "model" where a runtime computes in the model's types.
        versions: of the packages involved.
        reason: "format" if it cannot read files of this format at all, None otherwise.
        remarks: what else there is to say: that its process died and was started again.
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

    @property
    def outputs(self) -> "Mapping[str, Array]":
        """Return the outputs of the first run by name; empty if there was none."""
        return self.runs[0] if self.runs else {}


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a runner can run here, and what it is.

    Attributes:
        runner: its long name.
        is_available: whether it can run a model.
        reason: why not.
        remedy: what to install.
        full_name: of the device.
        capabilities: of the device, "FP32", "BF16".
        default_precision: what it computes in if nothing is asked for.
        remarks: what must be known to judge its results.
        versions: of the packages involved.
    """

    runner: str
    is_available: bool
    reason: str = ""
    remedy: str = ""
    full_name: str = ""
    capabilities: tuple[str, ...] = ()
    default_precision: str = ""
    remarks: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


class Runner(ABC):
    """Executes whole models.

    Attributes:
        name: the long one, "openvino:CPU".
    """

    name: str

    @abstractmethod
    def versions(self) -> Mapping[str, str]:
        """Return the versions of the packages involved; empty if they are not installed."""

    @abstractmethod
    def availability(self) -> Availability:
        """Return whether it can run here, and why not."""

    def remedy(self) -> str:
        """Return what to install when something is missing."""
        return ""

    def prepare(  # noqa: B027 - most can do nothing before they have inputs
        self, model_path: "str | Path", *, precision: str = "f32"
    ) -> None:
        """Begin to make a model ready to be run with a profile; do not wait for it."""

    @abstractmethod
    def run(
        self,
        model_path: "str | Path",
        feeds: "Mapping[str, Array]",
        *,
        taps: Sequence[Tap] = (),
        precision: str = "f32",
        repeat: int = 1,
        profile: bool = False,
        tap_memory: int = TAP_MEMORY,
        timeout: float = TIME_LIMIT,
    ) -> Outcome:
        """Run a model.

        Args:
            model_path: of the file.
            feeds: one array for each input, by any of its names.
            taps: nodes whose inputs and output are wanted; they are those of the first run.
            precision: what it should compute in; "default" leaves that to the device.
            repeat: how often to run it.
            profile: say what the runtime made of the nodes, and how long each took.
            tap_memory: bytes of tapped tensors that may be held at once; more come in batches.
            timeout: in seconds, for each batch.

        Returns:
            How it ended. A feed that the runtime does not take is refused: whether feeds fit the model
            as it was read is for the caller to say.

        Raises:
            UsageError: there is no such precision.
        """

    def close(self) -> None:  # noqa: B027 - most have nothing to end
        """End what is kept between runs."""


@dataclass(frozen=True, slots=True)
class Family:
    """Runners of one kind.

    Attributes:
        names: those that are listed: long names.
        make: gives the runner of a long name, or None if that belongs to no runner of this kind.
        order: of the lists.
    """

    names: tuple[str, ...]
    make: Callable[[str], Runner | None]
    order: int

    @classmethod
    def of_one(cls, name: str, make: Callable[[], Runner], order: int) -> "Family":
        """Return the family of a single runner."""
        return cls((name,), lambda given: make() if given == name else None, order)
