"""What is wanted of a comparison, and what came of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ir_scatter.compare.tolerances import Tolerances
from ir_scatter.compare.verdicts import Comparison, Guarded, Odd, Verdict
from ir_scatter.compare.voices import NUMPY
from ir_scatter.core.shapes import Shape
from ir_scatter.runners.base import OTHER_FORMAT, NodeFacts, Outcome, Status

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array
    from ir_scatter.runners.base import Availability

SAVED = "saved:"
"""What stands before the name of a runner whose results were saved."""

NEVER = "it is not computed with these inputs"
"""Why a node has no level of its own whose branch is not taken, or whose loop does not run."""

TIME_LIMIT = 600.0
TAP_MEMORY = 1 << 30


@dataclass(frozen=True, slots=True)
class Settings:
    """What is wanted of a comparison.

    Attributes:
        seed: for generated inputs.
        cases: on how many inputs; those that are given are the first.
        repeat: how often each runner runs each of them, without taps and with them.
        values: "plain" or "edge".
        input_shapes: shapes for inputs of the model by name.
        tolerances: how far elements may be apart.
        precision: what runners should compute in.
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
    timeout: float = TIME_LIMIT
    tap_memory: int = TAP_MEMORY
    keeps_runs: bool = False
    describes: bool = False


@dataclass(frozen=True, slots=True)
class NotTapped:
    """A node whose inputs could not be had on a runner, and why."""

    runner: str
    node: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """What came of the comparison of one model, or of two.

    Attributes:
        model: the path; of two models the first.
        settings: what was wanted.
        outcomes: one for each runner, the first that was not ok if there is one; without outputs.
        comparisons: of outputs, then of nodes; those that are equal without their arrays.
        guarded: what is to be said of indices.
        odd: who says something else than two others.
        not_tapped: nodes without a level of their own.
        remarks: what else there is to say.
        facts: what each runner made of the scatter nodes.
        feeds: the inputs of each case.
        runs: for each case the outcomes of all runners, if they were to be kept.
        other: the second model, "" if there is none.
        types: the element type of each scatter node's output in the model, by scope.
        operators: of each scatter node the operator, by scope.
        devices: what the runners are, by their names, if they were asked.
        about: what must be known to judge the results of a runner, by its name.
    """

    model: str
    settings: Settings
    outcomes: tuple[Outcome, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    guarded: tuple[Guarded, ...] = ()
    odd: tuple[Odd, ...] = ()
    not_tapped: tuple[NotTapped, ...] = ()
    remarks: tuple[str, ...] = ()
    facts: Mapping[str, tuple[NodeFacts, ...]] = field(default_factory=dict)
    feeds: "tuple[Mapping[str, Array], ...]" = ()
    runs: tuple[tuple[Outcome, ...], ...] = ()
    other: str = ""
    types: Mapping[str, str] = field(default_factory=dict)
    operators: Mapping[str, str] = field(default_factory=dict)
    devices: "Mapping[str, Availability]" = field(default_factory=dict)
    about: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def differs(self) -> bool:
        """Tell whether something differs, changes from run to run, or got illegal indices."""
        found = any(one.measure.verdict.is_difference for one in self.comparisons)
        return found or any(one.is_illegal for one in self.guarded)

    @property
    def ran(self) -> tuple[str, ...]:
        """Return the runners that ran the model."""
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
        named = [said for said in one.outcomes if not said.runner.startswith(SAVED)]
        if one.failed or (named and all(said.reason == OTHER_FORMAT for said in named)):
            return True
    is_nothing = not any(one.comparisons for one in found)
    return bool(found) and is_nothing and not all(len(one.ran) > 1 for one in found)


def with_nothing_said(found: Compared) -> Compared:
    """Return a comparison that says so if nothing was compared, and why."""
    if found.comparisons:
        return found
    ran = found.ran
    reason = "no runner ran the model"
    if len(ran) == 1:
        reason = f"{ran[0]} alone ran the model, and no scatter node of it could be held against NumPy"
    elif ran:
        reason = "the model has no outputs and no scatter nodes"
    return replace(found, remarks=(*found.remarks, f"nothing was compared: {reason}"))


def without_arrays(one: Comparison) -> Comparison:
    """Return a comparison without the arrays that nobody will look at."""
    if one.measure.verdict is not Verdict.EQUAL:
        return one
    return replace(one, got=None, expected=None, inputs=())


def worse(known: Outcome | None, found: Outcome) -> Outcome:
    """Return the outcome that is told of a runner: the first that was not ok; without its arrays."""
    if known is not None and (known.status is not Status.OK or found.status is Status.OK):
        return known
    return replace(found, runs=(), tapped=(), tapped_runs=(), facts=())
