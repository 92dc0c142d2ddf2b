"""Settings and results of comparisons: one `Comparison` per tensor, and remarks about the runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath
from typing import Self

import numpy as np

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.compare.measure import Measure, Tolerances, Verdict
from ir_scatter.compare.pairing import NamePair, Pairing
from ir_scatter.core.arrays import Array
from ir_scatter.core.display import record
from ir_scatter.core.errors import IllegalCase, IllegalIndex
from ir_scatter.core.shapes import Shape
from ir_scatter.core.value_ranges import ValueRange
from ir_scatter.core.words import counted, listed
from ir_scatter.evaluate.certainty import DetailedResult
from ir_scatter.ops.spec import NEGATIVE_INDEX, Reduction
from ir_scatter.runners.base import OTHER_FORMAT, Availability, NodeFacts, Outcome, Status
from ir_scatter.runners.defaults import NUMPY, PRECISION, TAP_MEMORY, TAPS, TIME_LIMIT

SAVED = "saved:"
"""Prefix of the name of a runner whose results were loaded from a folder."""

NOT_COMPUTED = "it is not computed with these inputs"
"""Reason why a node has no tapped values: its branch is not taken, or its loop does not iterate."""


def short_names(first: str, second: str) -> tuple[str, str]:
    """Return the shortest distinct names of two files.

    Example: "a/model.xml" and "b/model.xml" if both files are called model.xml.
    """
    first_parts, second_parts = PurePath(first).parts, PurePath(second).parts
    for count in range(1, max(len(first_parts), len(second_parts))):
        names = "/".join(first_parts[-count:]), "/".join(second_parts[-count:])
        if names[0] != names[1]:
            return names
    return first, second


def with_verb(names: Sequence[str], singular: str, plural: str) -> str:
    """Return names as the subject of a verb: "a differs", "a and b differ"."""
    return f"{listed(names)} {singular if len(names) == 1 else plural}"


class Level(StrEnum):
    """Whether a compared tensor is a model output or a node output.

    For a node, NumPy computes the reference from the inputs that the node got on its runner.
    """

    MODEL = "model"
    NODE = "node"


class Relation(StrEnum):
    """What a tensor is compared with; this decides which of the two can be called wrong."""

    DOCUMENT = "document"
    """The result of NumPy, which implements the specification: the expected result."""
    RUNNERS = "runners"
    """The result of another runtime: if they differ, it is unknown which is wrong."""
    REPEAT = "repeat"
    """Another run of the same runner on the same inputs."""
    MODELS = "models"
    """The result of the same runner for the first of two models."""
    EARLIER = "earlier"
    """The saved result of the same runner from an earlier comparison."""


@record(eq=False)
class Comparison:
    """The comparison of one tensor of a runner with the same tensor of another runner, or of another run.

    `got`, `expected` and the `inputs` of a node are for reports; they are None if the tensors are equal.
    """

    level: Level
    node: str | None
    """The scope of the node as `validate` prints it; None for an output of the model."""
    tensor: str
    case: int
    subject: str
    reference: str
    measure: Measure
    place: tuple[int, ...] = ()
    """For a node in loops, the iteration of each loop, outermost first."""
    operator: str = ""
    """The operator of the node and its version: "ScatterUpdate-3"."""
    got: Array | None = field(default=None, repr=False)
    expected: Array | None = field(default=None, repr=False)
    inputs: tuple[Array | None, ...] = field(default=(), repr=False)
    subject_model: str = ""
    reference_model: str = ""
    caller: str = ""
    """For a node in a function, the scope of the node that calls the function."""
    tapped: bool = False
    """Whether this compares a runner's run with taps (intermediate tensors as outputs) with one without."""
    wrong_runs: tuple[int, int] | None = None
    """(number of runs with a wrong result, number of runs); None if all runs have the same verdict."""
    known_as: tuple[str, ...] = ()
    """The codes of known defects that explain the difference."""

    @property
    def relation(self) -> Relation:
        if self.subject_model != self.reference_model:
            return Relation.MODELS
        if self.subject == self.reference:
            return Relation.REPEAT
        if self.reference.removeprefix(SAVED) == self.subject.removeprefix(SAVED):
            return Relation.EARLIER
        return Relation.DOCUMENT if self.reference.endswith(NUMPY) else Relation.RUNNERS

    @property
    def sides(self) -> tuple[str, str]:
        """Labels of the two tensors for a report.

        Example: "on openvino:CPU" and "on onnxruntime", or "got" and "expected".
        """
        match self.relation:
            case Relation.DOCUMENT:
                return "got", "expected"
            case Relation.MODELS:
                first, second = short_names(self.subject_model, self.reference_model)
                return f"in {first}", f"in {second}"
            case Relation.RUNNERS:
                return f"on {self.subject}", f"on {self.reference}"
            case Relation.EARLIER:
                return "now", "before"
            case Relation.REPEAT if not self.tapped:
                return "in another run", "in the first"
        sides = "with taps", "without"
        return sides if self.measure.verdict is Verdict.NONDETERMINISTIC else sides[::-1]

    def describe_pair(self, got: object, expected: object) -> str:
        """Return two values with labels: "2, expected 3", or "2 on openvino:CPU, 3 on onnxruntime"."""
        first, second = self.sides
        if self.relation is Relation.DOCUMENT:
            return f"{got}, expected {expected}"
        return f"{got} {first}, {expected} {second}"


@record(is_brief=True)
class Guarded:
    """A remark on a node's inputs: illegal or negative indices, several updates of one element, or NaN."""

    runner: str
    node: str
    operator: str
    case: int
    kind: str
    """"out-of-range", "negative", "repeated", "illegal", or "nan" (NaN in a minimum or maximum with
    numbers)."""
    message: str
    is_illegal: bool = True
    """False for "repeated" and "nan": these inputs are legal, but several results are correct."""
    model: str = ""
    """The path of the model if two are compared."""

    @classmethod
    def illegal(cls, runner: str, scatter: ScatterNode, case: int, error: IllegalCase) -> Self:
        kind = "illegal"
        if isinstance(error, IllegalIndex):
            kind = "negative" if error.code == NEGATIVE_INDEX else "out-of-range"
        return cls(runner, scatter.node.scope, str(scatter.spec.key), case, kind, str(error))

    @classmethod
    def contested(cls, runner: str, scatter: ScatterNode, case: int, result: DetailedResult) -> Self | None:
        """Return a remark that counts the elements with several allowed values; None if there are none."""
        count = int(np.count_nonzero(result.contested))
        if not count:
            return None
        kind, elements = "repeated", f"{counted(count, 'element')} of {result.values.size}"
        message = f"several updates target {elements} without a reduction"
        if scatter.reduction is not Reduction.NONE:
            kind = "nan"
            message = f"NaN and numbers meet in {elements}, and no specification says which one remains"
        operator = str(scatter.spec.key)
        return cls(runner, scatter.node.scope, operator, case, kind, message, is_illegal=False)


@record(is_brief=True)
class Outlier:
    """Runners that disagree with the majority of at least three, or one runner that contradicts itself."""

    level: Level
    node: str | None
    tensor: str
    case: int
    runners: tuple[str, ...]
    """Names of runners; empty if two models differ although NumPy confirms both results."""
    message: str
    tapped: bool = False
    """Whether the runner contradicts itself: its outputs change when taps are added."""
    model: str = ""
    """The path of the model, if only one of two models is concerned; else ""."""


@record(is_brief=True)
class FirstDifference:
    """The first part of the model that adds to the difference in an output of a runner.

    A part consists of the nodes between two sets of tensors that were read from the runner. NumPy computes it
    from the first set and compares with the second.
    """

    runner: str
    case: int
    nodes: tuple[str, ...]
    """Scopes of the nodes in the part that compute values; empty if no part adds a difference."""
    operators: tuple[str, ...]
    """The operator types of `nodes`."""
    message: str


@record()
class NotTapped:
    """A node whose input tensors could not be read on a runner, and the reason."""

    runner: str
    node: str
    reason: str


@record()
class Lead:
    """Where to look next after a result: the known defects that explain it, or the fact that none does.

    Attributes:
        nodes: scopes of the nodes that the defects affect, or that the result or the runtime names.
        codes: codes of the defects; empty if no known defect explains the result.
        status: how the run ended; `OK` for a wrong or changing result.
        target: device and release: "openvino:CPU 2026.4.1".
        device: the device as users name it for `convert`: "CPU".
        operator: operator of the first node: "ScatterUpdate-3"; "" if it is no scatter node.
        untested: if no defect explains the result, how many known defects were never tested on that release.
        is_fixed: whether a conversion of the model for that device avoids the defects; None if not tried.
    """

    runner: str
    model: str
    nodes: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    status: Status = Status.OK
    target: str = ""
    device: str = ""
    operator: str = ""
    untested: int = 0
    is_fixed: bool | None = None


@dataclass(frozen=True, slots=True)
class CompareSettings:
    """Options of a comparison."""

    seed: int = 0
    cases: int = 1
    repeat: int = 1
    values: str = "plain"
    """Kind of numbers in generated inputs: "plain" for ordinary ones, "edge" for extreme ones."""
    input_shapes: Mapping[str, Shape] = field(default_factory=dict)
    input_ranges: Mapping[str, ValueRange] = field(default_factory=dict)
    """(lowest, highest) number of generated inputs, by input name."""
    given: tuple[str, ...] = ()
    """Conditions that generated inputs satisfy, by input names of the first model: "position in 0..15"."""
    tolerances: Tolerances = field(default_factory=Tolerances)
    precision: str = PRECISION
    pairwise: bool = False
    """Whether outputs of all pairs of runners are compared, not only each runner with the reference."""
    map_inputs: tuple[NamePair, ...] = ()
    """Pairs of inputs, one of each model, that get the same values."""
    map_outputs: tuple[NamePair, ...] = ()
    """Pairs of outputs, one of each model, that are compared."""
    reference: bool = True
    """Whether NumPy computes the model as the reference even if it is not among the runners."""
    timeout: float = TIME_LIMIT
    """Time limit of each run, in seconds."""
    taps: str = TAPS[0]
    """Nodes whose outputs are read to locate a difference: "scatter" or "all"."""
    tap_memory: int = TAP_MEMORY
    """Maximum bytes of tapped tensors in memory at once."""
    keeps_runs: bool = False
    """Whether the result keeps all outputs and tapped tensors, so that they can be saved."""
    describes: bool = False
    """Whether the result includes descriptions of devices, and hashes of model files."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts that identify a model, so that readers of a report can check that they have the same file."""

    path: str
    format: str
    """"OpenVINO IR" or "ONNX"."""
    opsets: tuple[str, ...]
    """"opset13", or "ai.onnx 18"."""
    files: tuple[tuple[str, int, str], ...]
    """(path, size in bytes, SHA-256) of the model file and its weight files."""


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """The runs of one runner on one set of inputs: the plain run, and the runs with taps."""

    plain: Outcome
    tapped: tuple[Outcome, ...] = ()


@record(eq=False)
class Compared:
    """The result of comparing one model, or two, whose paths are `model` and `other`."""

    model: str
    settings: CompareSettings
    outcomes: tuple[Outcome, ...] = ()
    """One per runner, without output arrays: its first failure, or its first outcome if none failed."""
    comparisons: tuple[Comparison, ...] = ()
    """The comparisons of model outputs, then those of nodes."""
    guarded: tuple[Guarded, ...] = ()
    outliers: tuple[Outlier, ...] = ()
    first_differences: tuple[FirstDifference, ...] = ()
    """For each runner with a wrong output, where it begins to differ; empty if two models are compared."""
    not_tapped: tuple[NotTapped, ...] = ()
    remarks: tuple[str, ...] = ()
    facts: Mapping[str, tuple[NodeFacts, ...]] = field(default_factory=dict)
    feeds: tuple[Mapping[str, Array], ...] = ()
    """The inputs of each case, by name."""
    passed_cases: int = 0
    """Number of cases with inputs from the caller; they come first, generated cases after them."""
    runs: tuple[tuple[Runs, ...], ...] = ()
    """The runs of all runners for each case; empty unless the settings keep them."""
    other: str = ""
    types: Mapping[str, str] = field(default_factory=dict)
    """The element type of each scatter node's output, by scope of the node."""
    operators: Mapping[str, str] = field(default_factory=dict)
    """The operator of each scatter node, by scope of the node."""
    devices: Mapping[str, Availability] = field(default_factory=dict)
    about: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Why a runner's results are of limited value (an emulated device, for example), by runner name."""
    suspects: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Codes of known defects that disappear when nodes are tapped, by runner and node scope.

    Only for runners with a wrong output, or whose outputs were compared with nothing.
    """
    known_as: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The codes of known defects that explain the results of a runner, by its name."""
    leads: tuple[Lead, ...] = ()
    is_one_node: bool = False
    """Whether the model is a single scatter node with its inputs, so that its output is the node's output."""
    pairing: Pairing | None = None
    """The matching inputs and outputs of two models; None if there is only one."""
    by_model: Mapping[str, tuple[Outcome, ...]] = field(default_factory=dict)
    """If two models are compared: the outcomes of each runner for the first and the second, as in
    `outcomes`."""
    model_facts: tuple[ModelFacts, ...] = ()
    """One for each model; empty unless the settings ask for it."""
    interrupted: str = ""
    """What is missing because the user interrupted the comparison; "" if it is complete."""
    machine: str = ""
    """The machine of a fleet that made this comparison."""
    not_run: tuple[str, ...] = ()
    """Branches and bodies that ran in no case; for a single model, only those that contain a scatter node."""
    not_tried: tuple[str, ...] = ()
    """Conditions that no case tried, such as repeated indices; results may differ under them."""
    apart: str = ""
    """How two machines differ that gave different results for the same device; "" if none did."""

    @property
    def differs(self) -> bool:
        """Whether some result differs, changes from run to run, or is based on illegal indices."""
        is_any_different = any(comparison.measure.verdict.is_difference for comparison in self.comparisons)
        return is_any_different or any(guarded.is_illegal for guarded in self.guarded)

    @property
    def ran(self) -> tuple[str, ...]:
        """The names of the runners that ran the model."""
        return tuple(outcome.runner for outcome in self.outcomes if outcome.status is Status.OK)

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """The outcomes of runners that the user named and that failed.

        Not a failure: an operator that NumPy does not support, or a format that a runtime does not read.
        """
        return tuple(
            outcome
            for outcome in self.outcomes
            if outcome.status not in {Status.OK, Status.INPUTS_DO_NOT_FIT}
            and outcome.reason != OTHER_FORMAT
            and not outcome.implicit
            and not outcome.runner.startswith(SAVED)
            and not (outcome.runner == NUMPY and outcome.status is Status.UNSUPPORTED)
        )


def has_failed(results: Sequence[Compared]) -> bool:
    """Return whether a comparison that the user asked for could not be made.

    Reasons: a named runner failed; no named runner reads the format of a model; generated inputs do not fit a
    model; or no result was compared although there was something to compare.
    """
    for compared in results:
        named = [
            outcome
            for outcome in compared.outcomes
            if not (outcome.implicit or outcome.runner.startswith(SAVED))
        ]
        is_unfit = any(outcome.status is Status.INPUTS_DO_NOT_FIT for outcome in compared.outcomes)
        if is_unfit and not compared.comparisons:
            return True
        if compared.failed or (named and all(outcome.reason == OTHER_FORMAT for outcome in named)):
            return True
    is_nothing_compared = not any(compared.comparisons for compared in results)
    return bool(results) and is_nothing_compared and not all(len(compared.ran) > 1 for compared in results)
