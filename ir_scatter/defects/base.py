"""Known defects of runtimes: the class `Defect`, the condition under which it affects a node, and its probes.

A probe is a test input that shows a defect. `doctor` runs the probes and records a `Result` for each.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from inspect import cleandoc
from typing import Any, NamedTuple, TypeAlias

from ir_scatter.analysis.reachability import Folding, reachability_of
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import EVERYTHING, Fact
from ir_scatter.core.diagnostics import Part, Severity
from ir_scatter.core.model import Value
from ir_scatter.core.parameters import Invocation, Parameter
from ir_scatter.core.shapes import Shape, element_count
from ir_scatter.ops.names import OperatorName
from ir_scatter.ops.spec import Role


class Result(StrEnum):
    """The recorded outcome of a probe, the worst first."""

    CRASHED = "crashed"
    WRONG = "wrong"
    ACCEPTED = "accepted"
    """The runtime accepts what the specification forbids."""
    REFUSED = "refused"
    ABSENT = "absent"
    """The release lacks the operator or element type, or does not read the format."""
    RIGHT = "right"
    """The runtime computes what the specification requires, or refuses what it forbids."""

    def is_like(self, other: "Result | None") -> bool:
        """Return whether a repetition of a probe with this result may give `other` instead.

        For example, a write outside of the output may or may not crash.
        """
        return self is other or {self, other} == {Result.CRASHED, Result.ACCEPTED}


class SymptomRow(NamedTuple):
    """A symptom: one way in which a runtime is wrong.

    Attributes:
        word: its name in JSON, histories and reports.
        verb: predicate for cases that show it: "3 of 4 are wrong".
        does: predicate for the runtime: "openvino:CPU 2026.4.1 gives wrong values".
        result: the result that `doctor` records for a probe that shows it.
        group: the heading under which reports list defects with this symptom.
        style: the class of its badge in the style sheet.
        meaning: a sentence about the runtime for readers of a report.
        cost: cost of running a case that shows it; 1 for a case that gives a result, more if another model
            must be loaded or another process started.
        is_fatal: whether the process ends; then cases run one by one, to find which one did it.
        is_of_numbers: whether it matters only if the output's values are read, not just its shape.
    """

    word: str
    verb: str
    does: str
    result: Result
    group: str
    style: str
    meaning: str
    cost: int = 1
    is_fatal: bool = False
    is_of_numbers: bool = False


class Symptom(StrEnum):
    """How a runtime is wrong; each symptom has the fields of its row as attributes."""

    _value_: str
    verb: str
    does: str
    result: Result
    group: str
    style: str
    meaning: str
    cost: int
    is_fatal: bool
    is_of_numbers: bool

    WRONG_VALUE = SymptomRow(
        word="wrong-value",
        verb="are wrong",
        does="gives wrong values",
        result=Result.WRONG,
        group="wrong values",
        style="mismatch",
        meaning="The result differs from the specification by more than rounding explains.",
        is_of_numbers=True,
    )
    NONDETERMINISTIC = SymptomRow(
        word="nondeterministic",
        verb="differ from run to run",
        does="gives results that may change from run to run",
        result=Result.WRONG,
        group="results that may change from run to run",
        style="nondeterministic",
        meaning="The same inputs give different results.",
        is_of_numbers=True,
    )
    REFUSED = SymptomRow(
        word="refused",
        verb="are refused",
        does="refuses it",
        result=Result.REFUSED,
        group="refusals",
        style="refused",
        meaning="A legal case is refused.",
        cost=6,
    )
    CRASHED = SymptomRow(
        word="crashed",
        verb="crash",
        does="crashes",
        result=Result.CRASHED,
        group="crashes",
        style="crashed",
        meaning="The process crashed.",
        cost=60,
        is_fatal=True,
    )
    HUNG = SymptomRow(
        word="hung",
        verb="hang",
        does="hangs",
        result=Result.CRASHED,
        group="crashes",
        style="timeout",
        meaning="No answer within the time limit.",
        cost=60,
        is_fatal=True,
    )
    ACCEPTED_ILLEGAL = SymptomRow(
        word="accepted-illegal",
        verb="give no error",
        does="silently accepts it",
        result=Result.ACCEPTED,
        group="illegal input accepted",
        style="illegal",
        meaning="An illegal case is silently accepted.",
    )

    def __new__(cls, *row: Any) -> "Symptom":
        """Return a member whose value is the word of a row."""
        facts = SymptomRow(*row)
        member = str.__new__(cls, facts.word)
        member._value_ = facts.word
        for name, fact in facts._asdict().items():
            setattr(member, name, fact)
        return member


class Stage(StrEnum):
    """The stage at which a defect shows, the earliest first.

    Nodes that the runtime removes before that stage are not affected.
    """

    LOAD = "when the file is loaded, whether or not the node is computed"
    READ = "when the model is read"
    COMPILE = "when the model is compiled"
    RUN = "when the model runs"

    def is_at_most(self, other: "Stage") -> bool:
        """Return whether this is the same stage or an earlier one."""
        stages = list(Stage)
        return stages.index(self) <= stages.index(other)


class Ternary(NamedTuple):
    """Whether a condition is true: True, False, or None if the file does not determine it.

    For None, `when` is a clause that states the unknown condition: "an index is negative".
    """

    truth: bool | None
    when: str = ""


class Meeting(NamedTuple):
    """The fact that a known defect affects a node, always or under a condition.

    Attributes:
        reason: the property of the node that triggers the defect, "indices have no dimensions".
        role: the input at fault; None for the node.
        part: the part of the node at fault, if it is not the input.
        when: the condition at run time, "an index is negative"; "" if the defect always occurs.
        probes: names of the probes that show it for such a node; empty for all.
        strikes: the stage at which the defect shows, if it differs from `Defect.strikes`.
        is_likely: whether the condition holds for nearly all inputs, such as "the index is not 0".
        is_unspecified: whether the specification allows several results, so that no result is wrong.
    """

    reason: str
    role: Role | None = None
    part: Part | None = None
    when: str = ""
    probes: tuple[str, ...] = ()
    strikes: Stage | None = None
    is_likely: bool = False
    is_unspecified: bool = False


def meets(
    reason: str, conditions: Iterable[Ternary | bool], role: Role | None = None, part: Part | None = None
) -> Meeting | None:
    """Return a `Meeting` unless a condition is false.

    Conditions that are unknown become `Meeting.when`.
    """
    whens = list[str]()
    for condition in conditions:
        truth, when = condition if isinstance(condition, Ternary) else (condition, "")
        if truth is False:
            return None
        if truth is None:
            whens.append(when)
    return Meeting(reason, role, part, " and ".join(filter(None, whens)))


Numbers: TypeAlias = tuple[int, ...] | list[Any] | int | float
"""An input of a probe: its shape (a tuple), or its values (a list or a number)."""


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """A test input for one operator that shows a defect, or (in `Defect.near`) a similar one that does not.

    Attributes:
        name: its name in the history; if the case changes, so must the name.
        operator: operator and version, "ScatterUpdate-3".
        data, indices, updates: values as lists, or a shape (a tuple). A shape is filled with 1, 2, 3 ..., for
            indices with zeros.
        axis: the axis; None if the operator has none.
        attributes: attributes of the node.
        constants: the inputs that are constants of the model.
        shapes: how the model declares shapes: "static", "bounded" or "dynamic".
        axis_shape: the shape of an axis that is an input.
        breaks: the name of the rule that it breaks on purpose; "" if it is legal.
        times: number of consecutive runs, if the result changes from run to run.
        threads: number of threads; 0 for the runtime's default.
        iterations: in an IR, the number of iterations of a loop around the node, all with the same inputs; 0
            for no loop.
        before: in an IR, types of general operators between the model's input and data; see `OneNode`.
        keeps_state: in an IR, whether data is a state that the model reads and writes back unchanged; then
            `times` counts inferences without a reset between them.
        in_function: in ONNX, whether the node is in a function that the model calls.
    """

    name: str
    operator: OperatorName
    data: Numbers
    indices: Numbers | None
    updates: Numbers
    axis: int | None = None
    element_type: str = "f32"
    index_type: str = "i64"
    attributes: Mapping[str, Any] = field(default_factory=dict)
    constants: frozenset[Role] = frozenset({Role.AXIS})
    shapes: str = "static"
    axis_shape: tuple[int, ...] = ()
    breaks: str = ""
    times: int = 1
    threads: int = 0
    iterations: int = 0
    before: tuple[str, ...] = ()
    keeps_state: bool = False
    in_function: bool = False


def rank_of(shape: Shape, rank: int, name: str) -> Ternary:
    """Return whether a shape has a rank; `name`, the input's name, is for the text if the rank is dynamic."""
    return Ternary(None if shape is None else len(shape) == rank, f"{name} has rank {rank}")


def has_elements(scatter: ScatterNode) -> Ternary:
    """Return whether data has elements; plugins do not compile nodes with empty data."""
    return Ternary(element_count(scatter.data_shape) != 0)


def is_folded(scatter: ScatterNode, value: Value) -> bool | None:
    """Return whether OpenVINO folds a value to a constant before it compiles the model; None if unknown.

    Constants count, and results that operators compute from constants alone, with or without a NumPy kernel.
    """
    if scatter.is_constant(value):
        return True
    reachability = scatter.facts.result_of(reachability_of)
    folding = Folding.NO if reachability is None else reachability.folding(value)
    return None if folding is Folding.MAYBE else folding is Folding.YES


Affects: TypeAlias = Callable[[ScatterNode], Meeting | None]


@dataclass(frozen=True, slots=True, eq=False)
class Defect:
    """A known defect of runtimes; as a decorator, it turns a function `affects` into a Defect.

    Attributes:
        name: "scalar-indices-refused".
        runners: long names of the runners that have it: "openvino:CPU"; without device numbers, and without
            emulators of a device.
        symptom: what the runtime does with an affected node.
        reads: all facts about a node that `affects` reads.
        probes: test inputs that show it.
        strikes: the stage at which probes fail on the installed releases; for wrong values the stage `RUN`,
            even if they are computed earlier.
        near: similar cases that the runtime computes correctly.
        avoid: how to avoid the defect, in a sentence without a full stop.
        fixed_by: the arguments with which `convert` makes a node safe, whatever its form; None if that
            depends on the form of the node.
        per_model: severity of one diagnostic for all nodes of a model that it may affect at run time; None
            for one diagnostic per node.
        depends_on_instructions: whether the result of a probe may differ between processors with different
            instruction sets; then records of other processors do not count.
        may_crash: whether the same input may also crash the process, by access outside of memory.
        stays: whether every node that reads the input is affected, so that rewriting the scatter node does
            not help.
        remains: why no rewrite of a node avoids it, in a sentence without a full stop; "" if some may.
        taps_hide: whether an affected node is computed correctly if its data is also a model output.
        inferences: number of consecutive inferences, without a reset of states, until it shows.
        affects: returns a `Meeting` if a node is affected; never for nodes that break rules which no probe
            breaks.
        text: what goes wrong, why, since when; the docstring of the decorated function.
    """

    code: str
    name: str
    runners: tuple[str, ...]
    symptom: Symptom
    probes: tuple[Probe, ...]
    near: tuple[Probe, ...] = ()
    avoid: str = ""
    fixed_by: tuple[Parameter, ...] | None = None
    per_model: Severity | None = None
    depends_on_instructions: bool = False
    may_crash: bool = False
    stays: bool = False
    remains: str = ""
    taps_hide: bool = False
    inferences: int = 1
    strikes: Stage = Stage.RUN
    reads: frozenset[Fact] = EVERYTHING
    affects: Affects | None = None
    text: str = ""

    @property
    def breaks(self) -> frozenset[str]:
        """The names of the rules that its probes break; affected nodes may break them as well."""
        return frozenset([probe.breaks for probe in self.probes if probe.breaks])

    def word_of(self, result: Result | None) -> str:
        """Return a result of its probes in words: "varies" if results change, which need not be wrong."""
        is_varying = self.symptom is Symptom.NONDETERMINISTIC and result is Result.WRONG
        return "varies" if is_varying else str(result)

    def may_repeat(self, result: Result, other: Result | None) -> bool:
        """Return whether repeating a probe that gave `other` may give `result`."""
        return result.is_like(other) or (self.may_crash and {result, other} == {Result.CRASHED, Result.WRONG})

    def advice(self, model: str = "") -> str:
        """Return how to work around it, with the call that does so, if there is one for all nodes."""
        if self.fixed_by is None:
            return self.avoid
        arguments = {parameter.name: parameter.value for parameter in self.fixed_by}
        call = Invocation("convert", arguments)
        return f"{self.avoid} (`{call.for_model(model) if model else call}`)"

    def __call__(self, affects: Affects) -> "Defect":
        return replace(self, affects=affects, text=cleandoc(affects.__doc__ or ""))
