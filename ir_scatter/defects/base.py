"""What a known defect of a runtime is: which nodes meet it, and the cases that show it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from inspect import cleandoc
from typing import Any, NamedTuple, TypeAlias

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import EVERYTHING, Fact
from ir_scatter.core.diagnostics import Part, Severity
from ir_scatter.core.shapes import Shape, element_count
from ir_scatter.ops.names import OperatorName
from ir_scatter.ops.spec import Role


class Result(StrEnum):
    """The recorded outcome of a probe, the worst first."""

    CRASHED = "crashed"
    WRONG = "wrong"
    ACCEPTED = "accepted"
    """It accepts what the specification forbids."""
    REFUSED = "refused"
    ABSENT = "absent"
    """The release has no such operator or element type, or does not read the format."""
    RIGHT = "right"
    """It computes what the specification says, or refuses what that forbids."""

    def is_like(self, other: "Result | None") -> bool:
        """Whether a repetition may give the other one: a write outside of the output may or may not crash."""
        return self is other or {self, other} == {Result.CRASHED, Result.ACCEPTED}


class SymptomRow(NamedTuple):
    """All facts about a symptom; a new symptom is a new row and the code that produces it.

    Attributes:
        word: its name in JSON, histories and reports.
        verb: what cases that show it do: "3 of 4 are wrong".
        result: how `doctor` records a probe that shows it.
        group: the heading under which reports list defects with this symptom.
        style: the class of its badge in the style sheet.
        meaning: a sentence about the runtime for readers of a report.
        cost: of running a case that shows it, in units of a case that is answered: another model is loaded,
            or another process is started.
        is_fatal: whether the process ends, so that cases are run one by one to find which one did it.
        is_of_numbers: whether it matters only where the numbers of an output are read.
    """

    word: str
    verb: str
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
        result=Result.WRONG,
        group="wrong values",
        style="mismatch",
        meaning="The result differs from the specification by more than rounding explains.",
        is_of_numbers=True,
    )
    NONDETERMINISTIC = SymptomRow(
        word="nondeterministic",
        verb="differ from run to run",
        result=Result.WRONG,
        group="wrong values",
        style="nondeterministic",
        meaning="The same inputs give different results.",
        is_of_numbers=True,
    )
    REFUSED = SymptomRow(
        word="refused",
        verb="are refused",
        result=Result.REFUSED,
        group="refusals",
        style="refused",
        meaning="A legal case is refused.",
        cost=6,
    )
    CRASHED = SymptomRow(
        word="crashed",
        verb="crash",
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
    """When a defect strikes, the earliest first: what is removed from a model before that is spared."""

    LOAD = "when the file is loaded, whether or not the node is computed"
    READ = "when the model is read"
    COMPILE = "when the model is compiled"
    RUN = "when the model runs"

    def is_at_most(self, other: "Stage") -> bool:
        """Whether it is the same stage, or an earlier one."""
        stages = list(Stage)
        return stages.index(self) <= stages.index(other)


class Known(NamedTuple):
    """Whether a condition holds; None if that hangs on what a file does not say, and then `when` it does."""

    truth: bool | None
    when: str = ""


class Meeting(NamedTuple):
    """That a node meets a defect.

    Attributes:
        reason: the fact of the node that triggers it, "indices have no dimensions".
        role: the input that it is about; None for the node.
        part: what is at fault, if it is not the input.
        when: what must be so when the model runs, "an index is negative"; "" if it is certain.
        probes: the names of those probes that tell; empty for all.
        strikes: when, if that is not as for other nodes that meet the defect.
    """

    reason: str
    role: Role | None = None
    part: Part | None = None
    when: str = ""
    probes: tuple[str, ...] = ()
    strikes: Stage | None = None


def meets(
    reason: str, conditions: Iterable[Known | bool], role: Role | None = None, part: Part | None = None
) -> Meeting | None:
    """Return that a node meets a defect if all conditions hold, or those that are open may hold."""
    open_ = list[str]()
    for one in conditions:
        truth, when = one if isinstance(one, Known) else (one, "")
        if truth is False:
            return None
        if truth is None:
            open_.append(when)
    return Meeting(reason, role, part, " and ".join(filter(None, open_)) if open_ else "")


Numbers: TypeAlias = tuple[int, ...] | list[Any] | int | float
"""A shape (a tuple), to be filled, or the numbers themselves."""


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """A case of the table that shows a defect, or comes near it and must not.

    Attributes:
        name: its name in the history; another case gets another name.
        operator: with its version.
        data, indices, updates: a shape (a tuple), to be filled with numbers that count, for indices with
            zeros; or numbers as lists.
        axis: as it is written; None where the operator has none.
        attributes: those that are written.
        constants: the inputs that the model holds.
        shapes: "static", "bounded" or "dynamic": how the model says them.
        axis_shape: of an axis that is an input.
        breaks: the name of the rule that it breaks on purpose; "" if it is legal.
        times: how often it is run in a row, where the result changes from run to run.
        threads: that compute; 0 leaves that to the runtime.
        iterations: of a loop around it that gives each the same, in an IR; 0 for no loop.
        before: the types of general operators between the input and data, in an IR; see `OneNode`.
        keeps_state: whether data is a state that the model reads and writes unchanged, in an IR; `times` are
            inferences then, without a reset between them.
        in_function: whether it is in a function that the model calls, in ONNX.
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


def rank_of(shape: Shape, rank: int, what: str) -> Known:
    """Return whether something has a rank."""
    return Known(None if shape is None else len(shape) == rank, f"{what} has rank {rank}")


def has_elements(scatter: ScatterNode) -> Known:
    """Return whether data may have elements: a plugin compiles nothing where it cannot."""
    return Known(element_count(scatter.data_shape) != 0)


Affects: TypeAlias = Callable[[ScatterNode], Meeting | None]


@dataclass(frozen=True, slots=True, eq=False)
class Defect:
    """One defect of one runner: one code, never renumbered or reused. What it decorates becomes it.

    Attributes:
        name: "scalar-indices-refused".
        runners: the long names of those that have it, "openvino:CPU"; of devices without a number, and
            not those of stand-ins.
        symptom: what the runtime does with a node that meets it.
        reads: all that `affects` looks at.
        probes: cases that show it.
        strikes: when: at which stage probes fail on the installed releases; a wrong value matters when the
            model runs, whoever computed it.
        near: cases that come near it, and that the runtime computes right.
        avoid: how to get around it, in a sentence without a full stop.
        per_model: how much it matters where only a run tells, if that is said once for all nodes of a model:
            of what has an element type, and of numbers that may be illegal; None if each node is told of.
        depends_on_instructions: whether the result of a probe may be another one on a processor with other
            instructions; records of other processors tell nothing then.
        stays: whether every node that reads the input meets it, so that no other form avoids it.
        taps_hide: whether a node that meets it is right when its data is an output of the model too.
        inferences: how many it takes in a row, without a reset of states, until it shows.
        affects: tells whether a node meets it that breaks no rule, or only those that the probes break.
        text: what goes wrong, why, since when; the docstring of what it decorates.
    """

    code: str
    name: str
    runners: tuple[str, ...]
    symptom: Symptom
    probes: tuple[Probe, ...]
    near: tuple[Probe, ...] = ()
    avoid: str = ""
    per_model: Severity | None = None
    depends_on_instructions: bool = False
    stays: bool = False
    taps_hide: bool = False
    inferences: int = 1
    strikes: Stage = Stage.RUN
    reads: frozenset[Fact] = EVERYTHING
    affects: Affects | None = None
    text: str = ""

    @property
    def breaks(self) -> frozenset[str]:
        """The names of the rules that its probes break: a node may break them as well."""
        return frozenset([one.breaks for one in self.probes if one.breaks])

    def __call__(self, affects: Affects) -> "Defect":
        return replace(self, affects=affects, text=cleandoc(affects.__doc__ or ""))
