"""Runners of whole models: the base class `Runner`, its requests and its results.

A feed is one set of model inputs: arrays by name. A tap is a request for the inputs and the output of one
node. A status tells how a run ended.
"""

import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from ir_scatter.core.display import record
from ir_scatter.core.element_types import from_dtype
from ir_scatter.core.errors import BadFeed, UsageError
from ir_scatter.core.model import Graph, Node
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.process import Child, Failure
from ir_scatter.core.shapes import static
from ir_scatter.core.shortage import names_shortage
from ir_scatter.core.temporary import explained_temporary, process_folder
from ir_scatter.formats import FORMATS, format_of
from ir_scatter.formats.base import IR, ONNX_FORMAT
from ir_scatter.runners.defaults import PRECISION, PRECISIONS, QUESTION_TIME_LIMIT, TAP_MEMORY
from ir_scatter.version import version_of

if TYPE_CHECKING:
    from ir_scatter.analysis.reachability import UseKind
    from ir_scatter.core.arrays import Array
    from ir_scatter.defects.base import Stage

MODEL_PRECISION = "model"
"""The precision reported for a runtime that always computes in the element types of the model."""

PROGRESS_BYTES = 4
"""Size in bytes of the number of the current feed, in a file that survives a crash of the process."""
_LOADING = (1 << 8 * PROGRESS_BYTES) - 1
"""The content of this file while the model is loaded, before the first feed."""

OTHER_FORMAT = "format"
"""The reason of an `Outcome` if the runtime cannot read the format of the model file."""


ISSUE_FORM: Mapping[str, str] = MappingProxyType(
    {
        "Version": "version",
        "Operating System": "system",
        "Device used for inference": "device",
        "Framework": "framework",
        "Model used": "model",
        "Issue description": "description",
        "Step-by-step reproduction": "steps",
        "Is it a regression": "regression",
    }
)
"""The default form of a bug report, heading -> part of the report; see `Runner.issue_form`."""

_RELEASE = re.compile(r"@\d[\w.]*")
_NUMBER = re.compile(r"(?<=[A-Z])\.\w+$")


def plain_name(runner: str) -> str:
    """Return a long name without release and device number: "openvino@2025.1:GPU.1" -> "openvino:GPU"."""
    return _NUMBER.sub("", _RELEASE.sub("", runner))


class Status(StrEnum):
    """The status of a run; each is a result, not an error of this library."""

    OK = "ok"
    REFUSED = "refused"
    """The runtime rejects the model or the feed with a message."""
    UNSUPPORTED = "unsupported"
    """The runtime does not support an operator, an opset, a format or an element type of the model."""
    UNAVAILABLE = "unavailable"
    """The runtime is not installed, or the device is missing."""
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    INPUTS_DO_NOT_FIT = "inputs-do-not-fit"
    """All runners that accept the model fail on generated inputs, so that the inputs are the likely cause."""


class Tap(NamedTuple):
    """A request to return the inputs and the first output of one node.

    Attributes:
        scope: the path to the node as `validate` prints it, "branch:then_body/scatter".
        output: in ONNX the name of the node's first output, which identifies the node; "" in an IR.
        types: in ONNX the element types of the inputs, then of the output; "" if unknown.
        shapes: in ONNX the shapes of these; None if unknown.
        callers: for a node of a function, the paths of the calls to return; () for all. Attributes of the
            node may differ between calls.
        outputs_only: whether to return no inputs. Then the node may have any operator, otherwise only a
            scatter operator.
    """

    scope: str
    output: str = ""
    types: tuple[str, ...] = ()
    shapes: tuple[tuple[int, ...] | None, ...] = ()
    callers: tuple[str, ...] = ()
    outputs_only: bool = False


def tap_of(node: Node, format: str) -> Tap:
    """Return the tap for a node of a model of a format."""
    if format == IR or not node.outputs:  # in an IR the name of a node suffices: it is unique
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
    """A request to the child process to run a model; see `Runner.run`."""

    model: str
    device: str = ""
    precision: str = PRECISION
    profile: bool = False
    taps: tuple[Tap, ...] = ()
    repeat: int = 1
    tap_memory: int = TAP_MEMORY
    threads: int = 0
    keeps_states: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """One computation of a tapped node: its inputs and its first output.

    An omitted optional input is None.
    """

    place: tuple[int, ...]
    """The number of the iteration in each loop around the node, outermost loop first."""
    inputs: "tuple[Array | None, ...]"
    output: "Array"
    caller: str = ""
    """For a node of a function, the path of the node that called the function."""


@dataclass(frozen=True, slots=True, eq=False)
class Tapped:
    """The result of one tap: all computations of the node during a run, or the reason why there are none."""

    tap: Tap
    executions: tuple[Execution, ...] = ()
    problem: str = ""
    """Why the inputs and output of the node could not be read; "" if they could."""


@record()
class NodeFacts:
    """How a runtime executes one or more nodes of the model, in the runtime's terms."""

    name: str
    originals: tuple[str, ...]
    """The names of the model's nodes that this runtime node replaces."""
    kind: str
    """The type in the runtime, such as "ScatterUpdate" or "Reorder"."""
    kernel: str
    """The name of the implementation, such as "jit_avx512_I32"."""
    precision: str
    """The element type in which the kernel computes."""
    outputs: tuple[str, ...]
    microseconds: float | None
    """The execution time in microseconds; None if it was not measured or the node did not run."""


@record(eq=False, is_brief=True)
class Outcome:
    """The result of running a model.

    Attributes:
        message: the message of the runtime, shortened; "" if there is none.
        runs: the outputs by name, one mapping for each repetition.
        tapped: one result for each requested tap, in order.
        seconds: time for reading, compiling and the first run, in the child process.
        precision: as requested, "f32"; "model" if the runtime always computes in the model's types.
        reason: `OTHER_FORMAT` or None.
        implicit: whether the runner is a default, not named by the user.
        at_inference: whether the runtime accepted the model and failed during inference; for NumPy also if
            only some nodes failed.
        not_computed: the outputs that NumPy could not compute, if it computed others.
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
    implicit: bool = False
    at_inference: bool = False
    not_computed: tuple[str, ...] = ()

    @property
    def outputs(self) -> "Mapping[str, Array]":
        """The outputs of the first run by name; empty if there was none."""
        return self.runs[0] if self.runs else {}


class Streamed(NamedTuple):
    """The result for one of many feeds: status, outputs in the model's order, and error message."""

    status: Status
    outputs: "Sequence[Array]" = ()
    message: str = ""


@record()
class Availability:
    """Whether a runner can run on this machine, with the reason if not, and a description of its device."""

    runner: str
    is_available: bool
    reason: str = ""
    remedy: str = ""
    full_name: str = ""
    capabilities: tuple[str, ...] = ()
    """Capabilities that the device reports, such as "FP32" and "BF16"."""
    default_precision: str = ""
    remarks: tuple[str, ...] = ()
    """Facts that readers need to judge results of the runner."""
    versions: Mapping[str, str] = field(default_factory=dict)
    driver: str = ""
    """Build of the plugin and version of the device's driver, for bug reports."""

    @property
    def why_not(self) -> str:
        """Why the runner cannot run here, and how to fix that."""
        return f"{self.reason}; needed: {self.remedy}" if self.remedy else self.reason


class Optimizations(NamedTuple):
    """Nodes that a runtime removes from a model, and at which stage (reading, compiling ...).

    Attributes:
        dropped: the stage at which a node is removed, by the kind of its only use.
        skipped_loops: the stage at which the body of a Loop with a constant false condition is removed; None
            if the runtime keeps the body.
    """

    dropped: "Mapping[UseKind, Stage]" = MappingProxyType({})
    skipped_loops: "Stage | None" = None


class Runner:
    """Executes whole models in a child process that is kept between runs.

    A subclass with its own `environment` and `module` can run the same runtime in another environment: its
    `handlers` prepare the process and then return those of the original module.

    Attributes:
        name: the long name, "openvino:CPU".
        module: the module that the child process imports. Its function `handlers` (see `core.process`)
            returns at least "run" and "describe".
        packages: names of the distributions that the runner needs, the runtime first. `install` is the
            command that installs them.
        device: the device, for runtimes with several.
        declines: the end of the runtime's message if it has no implementation for an operator, which does not
            count as a refusal.
        is_default: whether the runner is used if the caller names none. False for an emulator, and for
            runners that users do not deploy models on.
        emulates: the long name of the device that it emulates; "" if it emulates none.
        leaves_to: for a runner that only folds constants, the long name of the runner that computes the
            remaining nodes.
        folded_by: the long name of the runner that computes nodes with constant inputs beforehand; "" if this
            runner computes every node itself.
        is_virtual: whether it distributes the work to other devices.
        approximates: OpenVINO types of operators without a specified accuracy on the device, even if f32 is
            requested.
        issue_form: the form of a bug report to the project: headings, and under each the part of the report.
            Parts are version, platform, system, architecture, device, framework, model, description, steps,
            regression; any other text is used as is.
    """

    name: str
    module: str
    packages: tuple[str, ...]
    install: str
    device: str = ""
    remarks: tuple[str, ...] = ()
    has_precision: bool = False
    questions_per_process: int | None = None
    declines: str | None = None
    formats: tuple[str, ...] = (IR, ONNX_FORMAT)
    is_default: bool = True
    emulates: str = ""
    folded_by: str = ""
    leaves_to: str = ""
    is_virtual: bool = False
    approximates: frozenset[str] = frozenset()
    issue_form: Mapping[str, str] = ISSUE_FORM

    @property
    def package(self) -> str:
        """The distribution of the runtime itself; "" if it needs none."""
        return self.packages[0] if self.packages else ""

    @property
    def listed_name(self) -> str:
        """The name under which `known` lists the runner: without release and device number."""
        return plain_name(self.name)

    def optimizations(self) -> Optimizations:
        """Return the nodes that the runtime removes.

        A method, so that starting a process does not load the tables.
        """
        return Optimizations()

    def environment(self) -> dict[str, str]:
        """Return environment variables to add in the child process."""
        return {}

    @cached_property
    def problem(self) -> str:
        """Why the runner cannot run here, as far as known without a test; "" if it may run."""
        missing = [name for name in self.packages if not version_of(name)]
        return f"{', '.join(missing)} is not installed" if missing else ""

    @property
    def is_on_cpu(self) -> bool:
        """Whether the runner computes on the CPU, so that results may depend on the instruction set."""
        return True

    def remedy(self) -> str:
        """Return the command or packages that install missing software."""
        return self.install

    def remedy_of(self, problem: str) -> str:
        """Return the command or packages that solve a problem; "" for a shortage such as memory."""
        return "" if names_shortage(problem) else self.remedy()

    @cached_property
    def child(self) -> Child:
        return Child(self.module, self.environment, self.questions_per_process)

    @cached_property
    def versions(self) -> Mapping[str, str]:
        """The versions of the packages by name; empty if one is not installed."""
        versions = {name: version_of(name) for name in self.packages}
        return versions if all(versions.values()) else {}

    def availability(self) -> Availability:
        """Run a small model, and return whether that succeeds, with the reason if not."""
        about: dict[str, Any] = {"remarks": self.remarks, "versions": self.versions}
        try:
            description, _ = self.ask("describe", self.device)
        except Failure as failure:
            return Availability(self.name, False, failure.message, self.remedy_of(failure.message), **about)
        return Availability(self.name, True, **description, **about)

    def another(self) -> Self:
        """Return a copy of this runner with its own child process, to run models in parallel."""
        runner = copy(self)
        runner.__dict__.pop("child", None)
        return runner

    def start(self) -> None:
        """Start the child process, which imports the runtime, without waiting for it."""
        if not self.problem:
            self.child.start()

    def run(
        self,
        model_path: "str | Path",
        feeds: "Mapping[str, Array]",
        *,
        taps: Sequence[Tap] = (),
        precision: str = PRECISION,
        repeat: int = 1,
        profile: bool = False,
        tap_memory: int = TAP_MEMORY,
        timeout: float = QUESTION_TIME_LIMIT,
        keeps_states: bool = False,
    ) -> Outcome:
        """Run a model; if memory does not suffice for all taps at once, several times.

        Args:
            model_path: the path of the file.
            feeds: one array for each input, by any of its names.
            taps: nodes whose inputs and output the first run returns.
            precision: the floating-point precision; "default" leaves it to the device.
            repeat: number of runs.
            profile: whether to report how the runtime executes nodes, and their times.
            tap_memory: limit of tapped tensors in memory, in bytes; more are tapped in batches.
            timeout: time limit for each batch, in seconds.
            keeps_states: whether each run continues with the states of the previous run. Otherwise states are
                reset.

        Returns:
            The outcome, "refused" if the runtime rejects a feed. The caller checks feeds against the model
            file.

        Raises:
            UsageError: there is no such precision.
        """
        if precision not in PRECISIONS:
            raise UsageError(f"precision is {precision!r}, expected {', '.join(PRECISIONS)}")
        base = Outcome(
            self.name,
            Status.OK,
            precision=precision if self.has_precision else MODEL_PRECISION,
            versions=self.versions,
        )
        if not self.problem and len(self.formats) < len(FORMATS):
            format = format_of(os.fspath(model_path))
            if format not in self.formats:
                readable = " and ".join(FORMATS[name].title for name in self.formats)
                message = f"the file is {FORMATS[format].title}, expected {readable}"
                return replace(base, status=Status.UNSUPPORTED, message=message, reason=OTHER_FORMAT)
        feeds = _as_arrays(feeds)
        path, taps, tapped = os.path.abspath(model_path), tuple(taps), list[Tapped]()
        seconds, ends, large = 0.0, list[str](), dict[str, int]()
        while len(tapped) < len(taps) or not ends:
            is_rest, rest = bool(ends), taps[len(tapped) :]
            times = 1 if is_rest else max(repeat, 1)
            request = RunRequest(
                path, self.device, precision, profile, rest, times, tap_memory, keeps_states=keeps_states
            )
            try:
                answer, died = self.ask("run", request, feeds, limit=timeout)
            except Failure as failure:
                if not is_rest:
                    return replace(
                        base,
                        status=Status(failure.status),
                        message=failure.message,
                        at_inference=failure.at_inference,
                    )
                reason = f"the run with taps: {failure.status} {failure.message}".rstrip()
                tapped += [Tapped(tap, problem=reason) for tap in rest]
                break
            if not is_rest:
                base = replace(base, runs=tuple(answer.runs), facts=answer.facts)
            if answer.too_large:
                large[rest[0].scope] = answer.too_large
            tapped += answer.tapped(rest, feeds)
            seconds += answer.seconds
            ends.append(died)
        remarks = [f"{end}, after other requests; a new process completed this one" for end in ends if end]
        if large:
            limit = f"more than {Parameter('tap_memory')} allows ({tap_memory})"
            remarks.append(
                f"reading the values of {', '.join(large)} takes up to {max(large.values())} bytes, {limit}"
            )
        return replace(base, tapped=tuple(tapped), remarks=tuple(dict.fromkeys(remarks)), seconds=seconds)

    def stream(
        self,
        model_path: "str | Path",
        feeds: "Sequence[Mapping[str, Array]]",
        *,
        timeout: float = QUESTION_TIME_LIMIT,
        most_deaths: int = 4,
        threads: int = 0,
        keeps_states: bool = False,
    ) -> list[Streamed]:
        """Load a model once, and run it for each of many feeds with equal names and types.

        If the process crashes, the current feed is run alone in a new process, and those before and after it
        in others. A damaged process may crash because of an earlier feed, so each crash counts.

        Args:
            model_path: the path of the file.
            feeds: for each run one array per input, by name, in the element types of the model.
            timeout: time limit for all feeds together, in seconds.
            most_deaths: number of crashes after which the remaining feeds are not run ("unavailable"). The
                feed of the last crash is reported as its cause.
            threads: number of threads, if the runtime has that option; 0 is the runtime's default.
            keeps_states: whether each feed continues with the states of the previous one. Otherwise states
                are reset.

        Returns:
            One result for each feed, in order; computed in f32 if the runtime has a precision.
        """
        request = RunRequest(
            os.path.abspath(model_path), self.device, threads=threads, keeps_states=keeps_states
        )
        with explained_temporary():
            descriptor, progress = tempfile.mkstemp(dir=process_folder())
            os.close(descriptor)
        deaths = most_deaths

        def stream(feeds: "Sequence[Mapping[str, Array]]") -> list[Streamed]:
            nonlocal deaths
            if not feeds or deaths <= 0:
                return [
                    Streamed(Status.UNAVAILABLE, message="not run, as other inputs crashed the process")
                    for _ in feeds
                ]
            with explained_temporary():
                Path(progress).write_bytes(_LOADING.to_bytes(PROGRESS_BYTES))
            is_alone = len(feeds) == 1
            try:
                answers: list[Streamed] = self.ask(
                    "stream", request, feeds, progress, limit=timeout, again=is_alone
                )[0]
                return answers
            except Failure as failure:
                number = int.from_bytes(Path(progress).read_bytes())
                answer = Streamed(Status(failure.status), message=failure.message)
                if answer.status not in {Status.CRASHED, Status.TIMEOUT} or number == _LOADING:
                    return [answer for _ in feeds]
                deaths -= 1
                if is_alone:
                    return [answer]
            before = stream(feeds[:number])
            alone = stream(feeds[number : number + 1]) if deaths > 0 else [answer]
            return [*before, *alone, *stream(feeds[number + 1 :])]

        try:
            return stream(feeds)
        finally:
            with suppress(OSError):  # the folder of the file was removed: the program is ending
                os.unlink(progress)

    def ask(
        self, name: str, *arguments: Any, limit: float = QUESTION_TIME_LIMIT, again: bool = True
    ) -> tuple[Any, str]:
        """Call a handler in the child process and return its result; see `Child.ask`."""
        if self.problem:
            raise Failure("unavailable", self.problem)
        return self.child.ask(name, *arguments, limit=limit, again=again)

    def close(self) -> None:
        if "child" in self.__dict__:
            self.child.close()


@dataclass(frozen=True, slots=True)
class Family:
    """A group of runners: some are listed, others are created when a user names them.

    Attributes:
        names: the long names of listed runners.
        make: returns the runner with a long name, or None if the name belongs to another family.
        order: position of the family in lists, ascending.
        prefix: prefix of its long names that users may omit.
    """

    names: tuple[str, ...]
    make: Callable[[str], Runner | None]
    order: int
    prefix: str = ""

    @classmethod
    def of_one(cls, name: str, make: Callable[[], Runner], order: int) -> "Family":
        """Return a family with a single runner, which is listed."""
        return cls((name,), lambda long: make() if long == name else None, order)


def _as_arrays(feeds: "Mapping[str, Array]") -> "dict[str, Array]":
    """Return a feed with all values as arrays; raises BadFeed for element types that no model has."""
    import numpy as np

    arrays = {}
    for name, feed in feeds.items():
        array = np.asarray(feed)
        if array.dtype.kind == "S" or from_dtype(array.dtype) is None:
            raise BadFeed(f"{name} is {array.dtype.name}, expected an element type of ONNX or OpenVINO")
        arrays[name] = array.astype(object) if array.dtype.kind in "UT" else array
    return arrays
