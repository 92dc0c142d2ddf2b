"""What a comparison is asked for, and what it finds: one result for each tensor, and notes beside them."""

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
from ir_scatter.core.words import counted, listed
from ir_scatter.evaluate.certainty import DetailedResult
from ir_scatter.ops.spec import NEGATIVE_INDEX, Reduction
from ir_scatter.runners.base import OTHER_FORMAT, Availability, NodeFacts, Outcome, Status
from ir_scatter.runners.defaults import PRECISION, TAP_MEMORY, TIME_LIMIT

NUMPY = "numpy"
"""The evaluator, by the name that it has among runners."""

SAVED = "saved:"
"""What stands before the name of a runner whose results were saved."""

NEVER = "it is not computed with these inputs"
"""Why a node has no level of its own whose branch is not taken, or whose loop does not run."""


def short_names(first: str, second: str) -> tuple[str, str]:
    """Return the names of two files, with as many of their folders as tell them apart."""
    both = PurePath(first).parts, PurePath(second).parts
    for count in range(1, max(map(len, both))):
        ends = ["/".join(parts[-count:]) for parts in both]
        if ends[0] != ends[1]:
            return ends[0], ends[1]
    return first, second


def act(names: Sequence[str], singular: str, plural: str) -> str:
    """Say who does something: "a departs", "a and b depart"."""
    return f"{listed(names)} {singular if len(names) == 1 else plural}"


class Level(StrEnum):
    """What is compared: the outputs of a model, or a node on the inputs that its runner gave it."""

    MODEL = "model"
    NODE = "node"


class Relation(StrEnum):
    """What a tensor is held against, and so who may be called wrong."""

    DOCUMENT = "document"
    """What NumPy computes as the document says: it is what is expected."""
    RUNNERS = "runners"
    """What another runtime computes: the two differ, and none of them is right before the other."""
    REPEAT = "repeat"
    """Another run of the same runner."""
    MODELS = "models"
    """What the runner makes of the first of two models."""
    EARLIER = "earlier"
    """What was saved of the runner."""


@record(eq=False)
class Comparison:
    """One tensor of one runner, held against that of another, or of another of its own runs.

    `got`, `expected` and the `inputs` of a node are for reports, and not there if the tensors are equal.
    """

    level: Level
    node: str | None
    """Its scope as `validate` prints it; None at level model."""
    tensor: str
    case: int
    subject: str
    reference: str
    measure: Measure
    place: tuple[int, ...] = ()
    """The iteration of each loop around the node, the outermost first."""
    operator: str = ""
    """Of the node, "ScatterUpdate-3"."""
    got: Array | None = field(default=None, repr=False)
    expected: Array | None = field(default=None, repr=False)
    inputs: tuple[Array | None, ...] = field(default=(), repr=False)
    subject_model: str = ""
    reference_model: str = ""
    caller: str = ""
    """For a node of a function the scope of the node that called it."""
    tapped: bool = False
    """Whether one of two runs of the same runner had taps."""
    wrong_runs: tuple[int, int] | None = None
    """In how many runs a node was wrong, of how many; None if it was the same each time."""

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
        """Where the two are from, "on openvino:CPU" and "on onnxruntime"; or "got" and "expected"."""
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

    def both(self, got: object, expected: object) -> str:
        """Say two things of the two sides: "2, expected 3", or "2 on openvino:CPU, 3 on onnxruntime"."""
        first, second = self.sides
        if self.relation is Relation.DOCUMENT:
            return f"{got}, expected {expected}"
        return f"{got} {first}, {expected} {second}"


@record(is_brief=True)
class Guarded:
    """Indices that a node got and that its rules say something about."""

    runner: str
    node: str
    operator: str
    case: int
    kind: str
    """"out-of-range", "negative", "repeated", "illegal", or "nan" where it meets numbers."""
    message: str
    is_illegal: bool = True
    """Repeated ones and NaN are not: they only leave open which value stays."""
    model: str = ""
    """Which one of two."""

    @classmethod
    def illegal(cls, runner: str, scatter: ScatterNode, case: int, error: IllegalCase) -> Self:
        kind = "illegal"
        if isinstance(error, IllegalIndex):
            kind = "negative" if error.code == NEGATIVE_INDEX else "out-of-range"
        return cls(runner, scatter.node.scope, str(scatter.spec.key), case, kind, str(error))

    @classmethod
    def contested(cls, runner: str, scatter: ScatterNode, case: int, found: DetailedResult) -> Self | None:
        """Say of how many elements the document leaves open which value stays; None if of none."""
        count = int(np.count_nonzero(found.contested))
        if not count:
            return None
        kind, elements = "repeated", f"{counted(count, 'element')} of {found.values.size}"
        message = f"several updates meet in {elements} without a reduction"
        if scatter.reduction is not Reduction.NONE:
            kind = "nan"
            message = f"NaN and numbers meet in {elements}, and no document says which one stays"
        operator = str(scatter.spec.key)
        return cls(runner, scatter.node.scope, operator, case, kind, message, is_illegal=False)


@record(is_brief=True)
class Outlier:
    """Of three or more runners the one or more that say something else; or one that contradicts itself."""

    level: Level
    node: str | None
    tensor: str
    case: int
    runners: tuple[str, ...]
    """Empty if two models differ by the document itself."""
    message: str
    tapped: bool = False
    """Whether a runner contradicts itself when nodes are tapped."""
    model: str = ""
    """Which one of two it is about; "" for both, or if there is only one."""


@record()
class NotTapped:
    """A node whose inputs could not be had on a runner, and why."""

    runner: str
    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class CompareSettings:
    """What is wanted of a comparison."""

    seed: int = 0
    cases: int = 1
    repeat: int = 1
    values: str = "plain"
    """Or "edge"."""
    input_shapes: Mapping[str, Shape] = field(default_factory=dict)
    tolerances: Tolerances = field(default_factory=Tolerances)
    precision: str = PRECISION
    pairwise: bool = False
    """Whether every pair of runners is compared at level model."""
    map_inputs: tuple[NamePair, ...] = ()
    """Inputs of the first model and the inputs of the second that get the same values."""
    map_outputs: tuple[NamePair, ...] = ()
    """Outputs of the first model and the outputs of the second that are compared with them."""
    reference: bool = True
    """Whether NumPy computes the model as the reference though nobody named it."""
    timeout: float = TIME_LIMIT
    """In seconds, for each run."""
    tap_memory: int = TAP_MEMORY
    """Bytes of tapped tensors that may be held at once."""
    keeps_runs: bool = False
    """Whether outputs and tapped values are kept, for saving."""
    describes: bool = False
    """Whether runners are asked what they are, and models are told by their hashes."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a model is, so that somebody else can tell whether he has the same."""

    path: str
    format: str
    """"OpenVINO IR" or "ONNX"."""
    opsets: tuple[str, ...]
    """"opset13", or "ai.onnx 18"."""
    files: tuple[tuple[str, int, str], ...]
    """Path, bytes and SHA-256 of the file and of those beside it."""


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """What one runner made of one set of inputs: without taps, and each time with them."""

    plain: Outcome
    tapped: tuple[Outcome, ...] = ()


@record(eq=False)
class Compared:
    """What came of the comparison of one model, or of two, whose paths are `model` and `other`."""

    model: str
    settings: CompareSettings
    outcomes: tuple[Outcome, ...] = ()
    """One for each runner, the first that was not ok if there is one; without outputs."""
    comparisons: tuple[Comparison, ...] = ()
    """Of outputs, then of nodes."""
    guarded: tuple[Guarded, ...] = ()
    outliers: tuple[Outlier, ...] = ()
    not_tapped: tuple[NotTapped, ...] = ()
    remarks: tuple[str, ...] = ()
    facts: Mapping[str, tuple[NodeFacts, ...]] = field(default_factory=dict)
    feeds: tuple[Mapping[str, Array], ...] = ()
    """One for each case."""
    runs: tuple[tuple[Runs, ...], ...] = ()
    """For each case those of all runners, if they were to be kept."""
    other: str = ""
    types: Mapping[str, str] = field(default_factory=dict)
    """The element type of each scatter node's output in the model, by scope; so are `operators`."""
    operators: Mapping[str, str] = field(default_factory=dict)
    devices: Mapping[str, Availability] = field(default_factory=dict)
    about: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What must be known to judge the results of a runner."""
    suspects: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of runners with a wrong output, or whose outputs are compared with nothing, the nodes that meet a known
    defect which taps hide, and its code."""
    is_one_node: bool = False
    """Whether the model is a scatter node and what feeds it: its output is that of the node."""
    pairing: Pairing | None = None
    """How two models belong together; None if there is only one."""
    by_model: Mapping[str, tuple[Outcome, ...]] = field(default_factory=dict)
    """Of two models, what each runner made of each, as `outcomes`."""
    model_facts: tuple[ModelFacts, ...] = ()
    """Of each model, if that was to be known."""
    interrupted: str = ""
    """What is missing because somebody did not want to wait; "" if nothing is."""
    machine: str = ""
    """Of a fleet the one that compared it."""
    not_run: tuple[str, ...] = ()
    """The scopes of bodies that ran in no case: those with a scatter node, of two models all."""
    not_tried: tuple[str, ...] = ()
    """What no case tries, and may hide a difference."""
    apart: str = ""
    """What differs between two machines that gave different results on the same device; "" if none did."""

    @property
    def differs(self) -> bool:
        """Tell whether something differs, changes from run to run, or got illegal indices."""
        found = any(one.measure.verdict.is_difference for one in self.comparisons)
        return found or any(one.is_illegal for one in self.guarded)

    @property
    def ran(self) -> tuple[str, ...]:
        return tuple(one.runner for one in self.outcomes if one.status is Status.OK)

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """Those named that could not run; NumPy need not know each operator, nor a runtime each format."""
        return tuple(
            one
            for one in self.outcomes
            if one.status is not Status.OK
            and one.reason != OTHER_FORMAT
            and not one.implicit
            and not one.runner.startswith(SAVED)
            and not (one.runner == NUMPY and one.status is Status.UNSUPPORTED)
        )


def has_failed(found: Sequence[Compared]) -> bool:
    """Tell whether runners that were named did not do what they were named for.

    That is so if one of them could not run, if none of them reads files of a model's format, and if
    nothing was compared at all although there was something to compare.
    """
    for one in found:
        named = [
            outcome for outcome in one.outcomes if not (outcome.implicit or outcome.runner.startswith(SAVED))
        ]
        if one.failed or (named and all(outcome.reason == OTHER_FORMAT for outcome in named)):
            return True
    is_nothing = not any(one.comparisons for one in found)
    return bool(found) and is_nothing and not all(len(one.ran) > 1 for one in found)
