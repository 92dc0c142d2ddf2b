"""What every runner is, what it is asked, and what came of it."""

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
from ir_scatter.core.process import Child, Failure
from ir_scatter.core.shapes import static
from ir_scatter.core.shortage import names_shortage
from ir_scatter.core.temporary import explained_temporary, process_folder
from ir_scatter.formats import FORMATS, format_of
from ir_scatter.formats.base import IR, ONNX_FORMAT
from ir_scatter.runners.defaults import PRECISION, PRECISIONS, QUESTION_TIME_LIMIT, TAP_MEMORY
from ir_scatter.version import version_of

if TYPE_CHECKING:
    from ir_scatter.analysis.reachability import Use
    from ir_scatter.core.arrays import Array
    from ir_scatter.defects.base import Stage

MODEL_PRECISION = "model"
"""Where a runtime computes in the types of the model and nothing else can be asked for."""

PROGRESS_BYTES = 4
"""Of the number of the feed at work in a file that outlives the process."""
_LOADING = (1 << 8 * PROGRESS_BYTES) - 1

OTHER_FORMAT = "format"
"""The reason of a runtime that cannot read files of the model's format, whatever they hold."""


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
"""The form of a bug report to a project without one; see `Runner.issue_form`."""

_RELEASE = re.compile(r"@\d[\w.]*")
_NUMBER = re.compile(r"(?<=[A-Z])\.\w+$")


def plain_name(runner: str) -> str:
    """Return the long name of a runner without a release and without the number of a device."""
    return _NUMBER.sub("", _RELEASE.sub("", runner))


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
    if format == IR or not node.outputs:  # names in an IR are unique
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
    """What a runtime is asked to run; see `Runner.run`."""

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


@record()
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


@record(eq=False, is_brief=True)
class Outcome:
    """How a run ended.

    Attributes:
        message: the runtime's own words, shortened; "" if there is nothing to say.
        runs: the outputs by name, once for each repetition.
        tapped: one for each tap, in the order in which they were asked for.
        seconds: what reading, compiling and the first run took in the runtime's process.
        precision: what was asked for, "f32"; "model" where a runtime computes in the model's types.
        reason: `OTHER_FORMAT` or None.
        implicit: whether nobody named the runner.
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

    @property
    def outputs(self) -> "Mapping[str, Array]":
        """Return the outputs of the first run by name; empty if there was none."""
        return self.runs[0] if self.runs else {}


class Streamed(NamedTuple):
    """What came of one of many feeds: the outputs in the model's order, or why there are none."""

    status: Status
    outputs: "Sequence[Array]" = ()
    message: str = ""


@record()
class Availability:
    """Whether a runner can run here, why not and what to install; and what its device is."""

    runner: str
    is_available: bool
    reason: str = ""
    remedy: str = ""
    full_name: str = ""
    capabilities: tuple[str, ...] = ()
    """Of the device, "FP32", "BF16"."""
    default_precision: str = ""
    remarks: tuple[str, ...] = ()
    """What must be known to judge its results."""
    versions: Mapping[str, str] = field(default_factory=dict)
    driver: str = ""
    """What a vendor asks for: the build of the plugin, and the driver below the device."""

    @property
    def why_not(self) -> str:
        """Why it cannot run here, and what it needs."""
        return f"{self.reason}; needed: {self.remedy}" if self.remedy else self.reason


class Optimizations(NamedTuple):
    """Nodes that a runtime leaves out, each from some stage on.

    Attributes:
        dropped: for nodes that are used in one way only, the stage by that use.
        skipped_loops: the stage for the body of a Loop whose stored condition is false; None if it runs.
    """

    dropped: "Mapping[Use, Stage]" = MappingProxyType({})
    skipped_loops: "Stage | None" = None


class Runner:
    """Executes whole models, in a process that is kept between runs.

    One that runs a runtime in other surroundings is a subclass with an `environment` and a `module` whose
    `handlers` prepare the process and then are those of the other.

    Attributes:
        name: the long one, "openvino:CPU".
        module: has the function `handlers`; see `core.process`. It gives at least "run" and "describe".
        packages: the distributions that it needs, and `install` what installs them.
        device: of a runtime that has several.
        declines: how its message ends where it leaves an operator to others, which is no refusal.
        is_default: whether it is used if the caller names no runners; not if it emulates another device, or
            if users do not deploy models on it.
        emulates: the long name of the device that it emulates; "" if it emulates none.
        folded_by: the long name of the runner that computes nodes with constant inputs before this one sees
            them, its own name for that runner itself; "" if every node is computed here.
        is_virtual: whether it distributes the work to other devices.
        issue_form: the headings of a bug report to its project, and the part of the report under each:
            version, platform, system, architecture, device, framework, model, description, steps,
            regression; any other text stands there itself.
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
    is_virtual: bool = False
    issue_form: Mapping[str, str] = ISSUE_FORM

    @property
    def package(self) -> str:
        """The distribution of the runtime itself; "" if it needs none."""
        return self.packages[0] if self.packages else ""

    @property
    def listed_name(self) -> str:
        """The name under which `known` lists it: of device 1 that of the device, without a release."""
        return plain_name(self.name)

    def optimizations(self) -> Optimizations:
        """Return which nodes the runtime leaves out; its tables are no part of starting a process."""
        return Optimizations()

    def environment(self) -> dict[str, str]:
        """Return what is added to the environment of the process."""
        return {}

    @cached_property
    def problem(self) -> str:
        """Why it cannot run here, as far as that is known without trying; "" if it may."""
        missing = [name for name in self.packages if not version_of(name)]
        return f"{', '.join(missing)} is not installed" if missing else ""

    @property
    def is_on_cpu(self) -> bool:
        """Whether the processor of the machine computes, so that its instructions may matter."""
        return True

    def remedy(self) -> str:
        """Return what to install when something is missing."""
        return self.install

    def remedy_of(self, problem: str) -> str:
        """Return what to install for a problem; "" if something ran out, where installing would not help."""
        return "" if names_shortage(problem) else self.remedy()

    @cached_property
    def child(self) -> Child:
        return Child(self.module, self.environment, self.questions_per_process)

    @cached_property
    def versions(self) -> Mapping[str, str]:
        """The versions of the packages involved; empty if they are not installed."""
        found = {name: version_of(name) for name in self.packages}
        return found if all(found.values()) else {}

    def availability(self) -> Availability:
        """Return whether it can run here, by running a small model, and why not."""
        about: dict[str, Any] = {"remarks": self.remarks, "versions": self.versions}
        try:
            told, _ = self.ask("describe", self.device)
        except Failure as failure:
            return Availability(self.name, False, failure.message, self.remedy_of(failure.message), **about)
        return Availability(self.name, True, **told, **about)

    def another(self) -> Self:
        """Return one of the same, with a process of its own."""
        found = copy(self)
        found.__dict__.pop("child", None)
        return found

    def start(self) -> None:
        """Let its process import the runtime, and do not wait for that."""
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
        """Run a model, and again for taps that memory did not allow before.

        Args:
            model_path: of the file.
            feeds: one array for each input, by any of its names.
            taps: nodes whose inputs and output are wanted; they are those of the first run.
            precision: what it should compute in; "default" leaves that to the device.
            repeat: how often to run it.
            profile: say what the runtime made of the nodes, and how long each took.
            tap_memory: bytes of tapped tensors that may be held at once; more come in batches.
            timeout: in seconds, for each batch.
            keeps_states: let each repeat go on with the states that the one before it left; else each
                begins anew.

        Returns:
            How it ended. A feed that the runtime does not take is refused: whether feeds fit the model
            as it was read is for the caller to say.

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
            found = format_of(os.fspath(model_path))
            if found not in self.formats:
                known = " and ".join(FORMATS[format].title for format in self.formats)
                message = f"the file is {FORMATS[found].title}, expected {known}"
                return replace(base, status=Status.UNSUPPORTED, message=message, reason=OTHER_FORMAT)
        feeds = _checked(feeds)
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
                    return replace(base, status=Status(failure.status), message=failure.message)
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
        remarks = [f"{end}, after other work; a new one was started and did it" for end in ends if end]
        if large:
            limit = f"more than --tap-memory allows ({tap_memory})"
            remarks.append(f"tapping {', '.join(large)} takes up to {max(large.values())} bytes, {limit}")
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
        """Run a model that is loaded once for each of many feeds of the same names and types.

        Where the process dies, the feed at work is run alone in a new one, and those before and after in
        others. A process that is damaged may die of what came before, so each death counts.

        Args:
            model_path: of the file.
            feeds: one array for each input, by name, of types that the model has.
            timeout: in seconds, for all of them.
            most_deaths: after so many the feeds that are left are not run: "unavailable"; the one at work
                at the last is said to have caused it.
            threads: that compute, where a runtime can be told; 0 leaves that to it.
            keeps_states: let each feed go on with the states that the one before it left; else each
                begins anew.

        Returns:
            One answer for each feed, in their order; computed in f32 where the runtime asks.
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
                    Streamed(Status.UNAVAILABLE, message="not run, as others ended the process")
                    for _ in feeds
                ]
            with explained_temporary():
                Path(progress).write_bytes(_LOADING.to_bytes(PROGRESS_BYTES))
            is_alone = len(feeds) == 1
            try:
                found: list[Streamed] = self.ask(
                    "stream", request, feeds, progress, limit=timeout, again=is_alone
                )[0]
                return found
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
            with suppress(OSError):  # removed with its folder: the program is ending
                os.unlink(progress)

    def ask(
        self, name: str, *arguments: Any, limit: float = QUESTION_TIME_LIMIT, again: bool = True
    ) -> tuple[Any, str]:
        """Return what a handler in the process returns; see `Child.ask`."""
        if self.problem:
            raise Failure("unavailable", self.problem)
        return self.child.ask(name, *arguments, limit=limit, again=again)

    def close(self) -> None:
        if "child" in self.__dict__:
            self.child.close()


@dataclass(frozen=True, slots=True)
class Family:
    """Runners of one kind.

    Attributes:
        names: the long names that are listed.
        make: gives the runner of a long name, or None if that belongs to no runner of this kind.
        order: of families in lists, ascending.
        prefix: the beginning of its long names that users may leave out.
    """

    names: tuple[str, ...]
    make: Callable[[str], Runner | None]
    order: int
    prefix: str = ""

    @classmethod
    def of_one(cls, name: str, make: Callable[[], Runner], order: int) -> "Family":
        """Return the family of a single runner."""
        return cls((name,), lambda long: make() if long == name else None, order)


def _checked(feeds: "Mapping[str, Array]") -> "dict[str, Array]":
    """Return the feeds as arrays of types that models have; BadFeed if one has another."""
    import numpy as np

    found = {}
    for name, feed in feeds.items():
        array = np.asarray(feed)
        if array.dtype.kind == "S" or from_dtype(array.dtype) is None:
            raise BadFeed(f"{name} is {array.dtype.name}, which no model has")
        found[name] = array.astype(object) if array.dtype.kind in "UT" else array
    return found
