"""Settings and results of comparisons: one `Comparison` for each tensor, and remarks about the runs."""

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
from ir_scatter.runners.defaults import PRECISION, TAP_MEMORY, TAPS, TIME_LIMIT

NUMPY = "numpy"
"""The name of the NumPy evaluator among runners."""

SAVED = "saved:"
"""Prefix of the name of a runner whose results were loaded from a folder."""

NOT_COMPUTED = "it is not computed with these inputs"
"""Why a node was not tapped whose branch is not taken, or whose loop does not run."""


def short_names(first: str, second: str) -> tuple[str, str]:
    """Return the names of two files, each with as many parent folders as are needed to distinguish them."""
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
    """The kind of tensor: an output of the model, or of a node for the inputs that it had on its runner."""

    MODEL = "model"
    NODE = "node"


class Relation(StrEnum):
    """The kind of reference that a tensor is compared with; it decides which side can be called wrong."""

    DOCUMENT = "document"
    """The result of NumPy, which follows the specification: the expected result."""
    RUNNERS = "runners"
    """The result of another runtime: if the two differ, neither is known to be wrong."""
    REPEAT = "repeat"
    """Another run of the same runner."""
    MODELS = "models"
    """The result of the same runner for the first of two models."""
    EARLIER = "earlier"
    """The saved result of the same runner."""


@record(eq=False)
class Comparison:
    """One tensor of one runner, compared with that of another runner or of another run of the same runner.

    `got`, `expected` and the `inputs` of a node are for reports; they are missing if the tensors are equal.
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
    """The iteration numbers of the loops around the node, outermost first."""
    operator: str = ""
    """The operator of the node: "ScatterUpdate-3"."""
    got: Array | None = field(default=None, repr=False)
    expected: Array | None = field(default=None, repr=False)
    inputs: tuple[Array | None, ...] = field(default=(), repr=False)
    subject_model: str = ""
    reference_model: str = ""
    caller: str = ""
    """For a node in a function, the scope of the node that calls the function."""
    tapped: bool = False
    """Whether one of two runs of the same runner had taps."""
    wrong_runs: tuple[int, int] | None = None
    """(runs with a wrong result, all runs); None if all runs gave the same verdict."""

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
        """Labels of the two tensors: "on openvino:CPU" and "on onnxruntime", or "got" and "expected"."""
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
        """Label two values: "2, expected 3", or "2 on openvino:CPU, 3 on onnxruntime"."""
        first, second = self.sides
        if self.relation is Relation.DOCUMENT:
            return f"{got}, expected {expected}"
        return f"{got} {first}, {expected} {second}"


@record(is_brief=True)
class Guarded:
    """A remark on the inputs of a node: illegal or negative indices, or several updates of one element."""

    runner: str
    node: str
    operator: str
    case: int
    kind: str
    """"out-of-range", "negative", "repeated", "illegal", or "nan" where it meets numbers."""
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
        """Report how many elements have several allowed values; None if each has only one."""
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
    """Runners that disagree with the others, if there are at least three, or one that contradicts itself."""

    level: Level
    node: str | None
    tensor: str
    case: int
    runners: tuple[str, ...]
    """Empty if two models differ although each is computed as specified."""
    message: str
    tapped: bool = False
    """Whether the outputs of the runner change when nodes are tapped."""
    model: str = ""
    """The path of the model concerned; "" for both of two models, or if there is only one."""


@record(is_brief=True)
class FirstDifference:
    """Where an output of a runner begins to differ: the first part of the model that adds a difference.

    A part lies between values that were read from the runner, and NumPy computes it from these values.
    """

    runner: str
    case: int
    nodes: tuple[str, ...]
    """The scopes of the nodes of the part that compute something; empty if no part adds a difference."""
    operators: tuple[str, ...]
    """Their types."""
    message: str


@record()
class NotTapped:
    """A node whose inputs could not be read on a runner, and why."""

    runner: str
    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class CompareSettings:
    """Options of a comparison."""

    seed: int = 0
    cases: int = 1
    repeat: int = 1
    values: str = "plain"
    """Numbers in generated inputs: "plain" for ordinary ones, "edge" for extreme ones."""
    input_shapes: Mapping[str, Shape] = field(default_factory=dict)
    input_ranges: Mapping[str, ValueRange] = field(default_factory=dict)
    """The lowest and the highest number of generated inputs, by name."""
    given: tuple[str, ...] = ()
    """What holds of inputs, by names of the first model: "position in 0..15"."""
    tolerances: Tolerances = field(default_factory=Tolerances)
    precision: str = PRECISION
    pairwise: bool = False
    """Whether outputs of every pair of runners are compared, not only those with the reference."""
    map_inputs: tuple[NamePair, ...] = ()
    """Inputs of the first model and the inputs of the second that get the same values."""
    map_outputs: tuple[NamePair, ...] = ()
    """Outputs of the first model and the outputs of the second that are compared with them."""
    reference: bool = True
    """Whether NumPy computes the model as the reference even if the caller does not name it."""
    timeout: float = TIME_LIMIT
    """Seconds for each run."""
    taps: str = TAPS[0]
    """Nodes whose values are read to find where a difference arises: "scatter" or "all"."""
    tap_memory: int = TAP_MEMORY
    """Bytes of tapped tensors in memory at once, at most."""
    keeps_runs: bool = False
    """Whether outputs and tapped values stay in the result, to be saved."""
    describes: bool = False
    """Whether the result describes devices, and models with the hashes of their files."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts that identify a model, so that a reader of a report can check that they have the same."""

    path: str
    format: str
    """"OpenVINO IR" or "ONNX"."""
    opsets: tuple[str, ...]
    """"opset13", or "ai.onnx 18"."""
    files: tuple[tuple[str, int, str], ...]
    """Path, size in bytes and SHA-256 of the model file and its files of weights."""


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
    """One for each runner, without outputs: the first that is not ok, else the first."""
    comparisons: tuple[Comparison, ...] = ()
    """First those of outputs, then those of nodes."""
    guarded: tuple[Guarded, ...] = ()
    outliers: tuple[Outlier, ...] = ()
    first_differences: tuple[FirstDifference, ...] = ()
    """For runners with a wrong output of one model, where it begins to differ."""
    not_tapped: tuple[NotTapped, ...] = ()
    remarks: tuple[str, ...] = ()
    facts: Mapping[str, tuple[NodeFacts, ...]] = field(default_factory=dict)
    feeds: tuple[Mapping[str, Array], ...] = ()
    """The inputs of each case, by name."""
    passed_cases: int = 0
    """Number of the first cases, whose inputs the caller passed; those of the others are generated."""
    runs: tuple[tuple[Runs, ...], ...] = ()
    """The runs of all runners for each case; empty unless the settings keep them."""
    other: str = ""
    types: Mapping[str, str] = field(default_factory=dict)
    """The element type of each scatter node's output, by scope."""
    operators: Mapping[str, str] = field(default_factory=dict)
    """The operator of each scatter node, by scope."""
    devices: Mapping[str, Availability] = field(default_factory=dict)
    about: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Limits of the results of a runner, by its name."""
    suspects: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Nodes that may be affected by a known defect which taps hide, with its code, by runner and scope.

    Only for runners with a wrong output, or whose outputs were compared with nothing.
    """
    is_one_node: bool = False
    """Whether the model is a single scatter node with its inputs, so that its output is that of the node."""
    pairing: Pairing | None = None
    """The matching inputs and outputs of two models; None if there is only one."""
    by_model: Mapping[str, tuple[Outcome, ...]] = field(default_factory=dict)
    """For two models, the outcomes of each runner for both, as in `outcomes`."""
    model_facts: tuple[ModelFacts, ...] = ()
    """One for each model; empty unless the settings ask for it."""
    interrupted: str = ""
    """What is missing because the user interrupted the comparison; "" if it is complete."""
    machine: str = ""
    """The machine of a fleet that made this comparison."""
    not_run: tuple[str, ...] = ()
    """Bodies that ran in no case: those with a scatter node; if two models are compared, all bodies."""
    not_tried: tuple[str, ...] = ()
    """Conditions that no case tried and that may hide a difference."""
    apart: str = ""
    """How two machines differ that gave different results on the same device; "" if none did."""

    @property
    def differs(self) -> bool:
        """Whether a result differs or changes from run to run, or a node gets illegal indices."""
        is_any_different = any(comparison.measure.verdict.is_difference for comparison in self.comparisons)
        return is_any_different or any(guarded.is_illegal for guarded in self.guarded)

    @property
    def ran(self) -> tuple[str, ...]:
        """The names of the runners that ran the model."""
        return tuple(outcome.runner for outcome in self.outcomes if outcome.status is Status.OK)

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """Outcomes of named runners that failed.

        It is no failure if NumPy does not support an operator, or a runtime does not read the format.
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
    """Return whether the runners that the user named failed to do their part.

    That is so if one of them could not run, if none of them reads the format of a model, if generated inputs
    do not fit a model, or if nothing at all was compared although there was something to compare.
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
