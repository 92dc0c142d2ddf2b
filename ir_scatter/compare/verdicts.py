"""What a comparison finds: the words, and one result for each tensor."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array


class Level(StrEnum):
    """What is compared: the outputs of a model, or a node on the inputs that its runner gave it."""

    MODEL = "model"
    NODE = "node"


class Verdict(StrEnum):
    """What is said of one tensor."""

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
        """Tell whether it makes the comparison fail."""
        return self in {Verdict.NONDETERMINISTIC, Verdict.MISMATCH}


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far apart two elements may be: |got - expected| <= absolute + relative * |expected|."""

    absolute: float = 0.0
    relative: float = 0.0


@dataclass(frozen=True, slots=True)
class Worst:
    """The element that is farthest off.

    Attributes:
        index: its position.
        got: the subject's value.
        expected: the reference's value.
    """

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
        verdict: in one word.
        elements: how many there are.
        mismatched: how many are outside of the tolerance.
        contested: of a node, how many more than one update writes without a reduction; of an output, how
            many are not judged because such an element reaches them.
        max_abs: the greatest absolute difference; infinite where only one is finite.
        max_rel: the greatest difference relative to the reference.
        max_ulp: the greatest number of representable values in between.
        worst: where the difference is greatest; None where there is none.
        nans: NaN in the subject and in the reference.
        infinities: infinite elements in the subject and in the reference.
        tolerance: what was allowed.
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
    tolerance: Tolerance = Tolerance()
    remark: str = ""
    excuse: Excuse | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """One tensor of one runner, held against that of another, or of another of its own runs.

    Attributes:
        level: what is compared.
        node: the scope of the node as `validate` prints it; None at level model.
        tensor: the name of the output.
        case: the number of the inputs.
        place: the iteration of each loop around the node, the outermost first.
        subject: the runner that is judged.
        reference: the runner that it is held against.
        operator: of the node, "ScatterUpdate-3"; "" at level model.
        measure: how they differ.
        got: the subject's tensor, for reports.
        expected: the reference's tensor.
        inputs: the node's inputs, by number; empty at level model.
        subject_model: where two models are compared, that of the subject.
        reference_model: and that of the reference.
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
    got: "Array | None" = field(default=None, repr=False)
    expected: "Array | None" = field(default=None, repr=False)
    inputs: "tuple[Array | None, ...]" = field(default=(), repr=False)
    subject_model: str = ""
    reference_model: str = ""
    caller: str = ""
    tapped: bool = False
    wrong_runs: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Guarded:
    """Indices that a node got and that its rules say something about.

    Attributes:
        runner: who gave them to it.
        node: its scope.
        operator: "ScatterUpdate-3".
        case: the number of the inputs.
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


@dataclass(frozen=True, slots=True)
class Odd:
    """The one of three or more voices that says something else, or one that contradicts itself.

    Attributes:
        level: where.
        node: the scope of the node; None at level model.
        tensor: the output.
        case: the number of the inputs.
        runners: those that depart from the rest; of two camps none is odd, and both are named.
        message: the sentence for people.
    """

    level: Level
    node: str | None
    tensor: str
    case: int
    runners: tuple[str, ...]
    message: str
