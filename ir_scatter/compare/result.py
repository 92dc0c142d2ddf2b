"""What a comparison is asked for, and what it finds: one result for each tensor, and notes beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

import numpy as np

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.compare.tolerance import EXACT, Tolerance, Tolerances
from ir_scatter.core.arrays import Array
from ir_scatter.core.errors import IllegalCase, IllegalIndex
from ir_scatter.core.shapes import Shape, counted
from ir_scatter.evaluate.certainty import DetailedResult
from ir_scatter.ops.spec import NEGATIVE_INDEX, Reduction
from ir_scatter.runners.base import OTHER_FORMAT, Availability, NodeFacts, Outcome, Status

NUMPY = "numpy"
"""The evaluator, by the name that it has among runners."""

SAVED = "saved:"
"""What stands before the name of a runner whose results were saved."""

NEVER = "it is not computed with these inputs"
"""Why a node has no level of its own whose branch is not taken, or whose loop does not run."""


class Level(StrEnum):
    """What is compared: the outputs of a model, or a node on the inputs that its runner gave it."""

    MODEL = "model"
    NODE = "node"


class Verdict(StrEnum):
    """What is said of one tensor, the better ones first."""

    EQUAL = "equal"
    """Bit by bit, NaN being equal to NaN."""
    CLOSE = "close"
    """Within the tolerance."""
    CONTESTED = "contested"
    """Several updates meet without a reduction, or NaN and numbers in a min or max, and the value is one
    that the document allows."""
    NONDETERMINISTIC = "nondeterministic"
    """The same runner gives another result for the same inputs."""
    MISMATCH = "mismatch"

    @property
    def is_difference(self) -> bool:
        return self in {Verdict.NONDETERMINISTIC, Verdict.MISMATCH}


@dataclass(frozen=True, slots=True)
class Worst:
    """The element that is farthest off: its position, and both values of it."""

    index: tuple[int, ...]
    got: Any
    expected: Any


@dataclass(frozen=True, slots=True)
class Excuse:
    """What of an output was not judged, because contested elements come before it.

    Attributes:
        elements: how many; None if not even the shape is certain.
        why: why more is excused than the elements that a contested one reaches by operators that move
            elements or work on each of them; "" if nothing more is.
    """

    elements: int | None
    why: str = ""

    @property
    def is_whole(self) -> bool:
        """Tell whether tensors are excused as a whole, and not single elements."""
        return bool(self.why)


@dataclass(frozen=True, slots=True)
class Measure:
    """How two tensors differ.

    Attributes:
        mismatched: how many elements are outside of the tolerance.
        contested: of a node, how many more than one update writes without a reduction; of an output, how
            many are not judged because such an element reaches them.
        max_abs: the greatest absolute difference; infinite where only one is finite.
        max_ulp: the greatest number of representable values in between.
        nans: how many are NaN in the subject and in the reference.
        remark: why tensors could not be compared element by element; "" if they were.
        excuse: why elements of an output that differ are not judged; None if all are.
    """

    verdict: Verdict
    elements: int = 0
    mismatched: int = 0
    contested: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0
    max_ulp: int = 0
    worst: Worst | None = None
    nans: tuple[int, int] = (0, 0)
    infinities: tuple[int, int] = (0, 0)
    tolerance: Tolerance = EXACT
    remark: str = ""
    excuse: Excuse | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """One tensor of one runner, held against that of another, or of another of its own runs.

    Attributes:
        node: the scope of the node as `validate` prints it; None at level model.
        case: the number of the inputs.
        place: the iteration of each loop around the node, the outermost first.
        operator: of the node, "ScatterUpdate-3"; "" at level model.
        got: the subject's tensor, for reports; neither it nor `expected` and `inputs` are kept if equal.
        subject_model: where two models are compared, that of the subject.
        caller: for a node of a function the scope of the node that called it.
        tapped: whether one of two runs of the same runner that are compared had taps.
        wrong_runs: of a node that was computed several times, in how many runs it was wrong, of how many;
            None if it was the same each time.
    """

    level: Level
    node: str | None
    tensor: str
    case: int
    subject: str
    reference: str
    measure: Measure
    place: tuple[int, ...] = ()
    operator: str = ""
    got: Array | None = field(default=None, repr=False)
    expected: Array | None = field(default=None, repr=False)
    inputs: tuple[Array | None, ...] = field(default=(), repr=False)
    subject_model: str = ""
    reference_model: str = ""
    caller: str = ""
    tapped: bool = False
    wrong_runs: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Guarded:
    """Indices that a node got and that its rules say something about.

    Attributes:
        kind: "out-of-range", "negative", "repeated", "illegal", or "nan" where it meets numbers.
        message: what is, then what was expected.
        is_illegal: False for repeated ones and NaN, which only leave open which value stays.
    """

    runner: str
    node: str
    operator: str
    case: int
    kind: str
    message: str
    is_illegal: bool = True

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


@dataclass(frozen=True, slots=True)
class Outlier:
    """The one of three or more runners that says something else, or one that contradicts itself.

    Attributes:
        runners: those that depart from the rest; of two camps none is odd, and both are named.
    """

    level: Level
    node: str | None
    tensor: str
    case: int
    runners: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True)
class NotTapped:
    """A node whose inputs could not be had on a runner, and why."""

    runner: str
    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class Settings:
    """What is wanted of a comparison.

    Attributes:
        cases: on how many inputs; those that are given are the first.
        repeat: how often each runner runs each of them, without taps and with them.
        values: "plain" or "edge".
        pairwise: whether every pair of runners is compared at level model.
        timeout: in seconds, for each run.
        tap_memory: bytes of tapped tensors that may be held at once.
        keeps_runs: whether outputs and tapped values are kept, for saving.
        describes: whether runners are asked what they are.
    """

    seed: int = 0
    cases: int = 1
    repeat: int = 1
    values: str = "plain"
    input_shapes: Mapping[str, Shape] = field(default_factory=dict)
    tolerances: Tolerances = field(default_factory=Tolerances)
    precision: str = "f32"
    pairwise: bool = False
    timeout: float = 600.0
    tap_memory: int = 1 << 30
    keeps_runs: bool = False
    describes: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """What one runner made of one set of inputs: without taps, and each time with them."""

    plain: Outcome
    tapped: tuple[Outcome, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """What came of the comparison of one model, or of two.

    Attributes:
        model: the path; of two models the first.
        outcomes: one for each runner, the first that was not ok if there is one; without outputs.
        comparisons: of outputs, then of nodes.
        guarded: what is to be said of indices.
        odd: who says something else than two others.
        facts: what each runner made of the scatter nodes.
        feeds: the inputs of each case.
        runs: for each case those of all runners, if they were to be kept.
        other: the second model, "" if there is none.
        types: the element type of each scatter node's output in the model, by scope.
        devices: what the runners are, if they were asked.
        about: what must be known to judge the results of a runner.
    """

    model: str
    settings: Settings
    outcomes: tuple[Outcome, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    guarded: tuple[Guarded, ...] = ()
    odd: tuple[Outlier, ...] = ()
    not_tapped: tuple[NotTapped, ...] = ()
    remarks: tuple[str, ...] = ()
    facts: Mapping[str, tuple[NodeFacts, ...]] = field(default_factory=dict)
    feeds: tuple[Mapping[str, Array], ...] = ()
    runs: tuple[tuple[Runs, ...], ...] = ()
    other: str = ""
    types: Mapping[str, str] = field(default_factory=dict)
    operators: Mapping[str, str] = field(default_factory=dict)
    devices: Mapping[str, Availability] = field(default_factory=dict)
    about: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

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
        """Return the runners that could not run.

        That NumPy does not know an operator is no failure, nor that a runtime reads other files.
        """
        return tuple(
            one
            for one in self.outcomes
            if one.status is not Status.OK
            and one.reason != OTHER_FORMAT
            and not one.runner.startswith(SAVED)
            and not (one.runner == NUMPY and one.status is Status.UNSUPPORTED)
        )


def has_failed(found: Sequence[Compared]) -> bool:
    """Tell whether runners that were named did not do what they were named for.

    That is so if one of them could not run, if none of them reads files of a model's format, and if
    nothing was compared at all although there was something to compare.
    """
    for one in found:
        named = [outcome for outcome in one.outcomes if not outcome.runner.startswith(SAVED)]
        if one.failed or (named and all(outcome.reason == OTHER_FORMAT for outcome in named)):
            return True
    is_nothing = not any(one.comparisons for one in found)
    return bool(found) and is_nothing and not all(len(one.ran) > 1 for one in found)
