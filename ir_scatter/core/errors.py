"""The exceptions of ir_scatter.

They mean that a call is wrong, or that a file cannot be read or written. Faults of a model are `Diagnostic`s.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ir_scatter.core.display import LONGEST_MESSAGE, brief

if TYPE_CHECKING:
    from ir_scatter.core.diagnostics import Diagnostic, Excerpt, Location, Span


class Error(Exception):
    """Base of every exception that this library raises on purpose."""

    def __str__(self) -> str:
        return brief(super().__str__(), LONGEST_MESSAGE)


class UsageError(Error):
    """The caller passed something wrong, such as an unknown code or a name that the model lacks."""


class IllegalCase(Error):
    """Inputs or attributes of one operator break its specification.

    `rule` is the code of the rule, "SCT203".
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class IllegalIndex(IllegalCase):
    """An index is out of range, or negative where the specification forbids it; nothing was written.

    Attributes:
        position: the position of the first of `count` bad indices.
        limits: the lowest and highest legal index there; no index is legal on an empty dimension.
    """

    def __init__(
        self, message: str, position: tuple[int, ...], value: int, limits: tuple[int, int], count: int
    ) -> None:
        is_negative = limits[0] == 0 and -limits[1] - 1 <= value < 0
        super().__init__(message, "SCT303" if is_negative else "SCT302")
        self.position = position
        self.value = value
        self.limits = limits
        self.count = count


class UnreadableModel(Error):
    """A file cannot be read as a model.

    Attributes:
        defect: the name of the broken rule, "malformed-xml".
        is_model: False if the file is not a model at all, for example another kind of XML file.
        span: the range of the fault, None if only its place is known.
        excerpts: the lines around the place.
        format: the format that it was read as, None if unknown.
        help: how to fix it, "" to use the text of the rule.
    """

    def __init__(self, defect: str, message: str, location: "Location", *, is_model: bool = True) -> None:
        super().__init__(f"{location.path}: {message}")
        self.defect = defect
        self.message = brief(message, LONGEST_MESSAGE)
        self.location = location
        self.is_model = is_model
        self.span: Span | None = None
        self.excerpts: dict[tuple[int, int], Excerpt] = {}
        self.format: str | None = None
        self.help = ""

    @property
    def advice(self) -> str:
        """The message, and how to fix it."""
        return "; ".join(filter(None, (self.message, self.help)))

    def __str__(self) -> str:
        return brief(f"{self.location.path}: {self.advice}", LONGEST_MESSAGE)


class BadFeed(UsageError):
    """An input of a model is missing, superfluous, or of a shape or type that the model does not accept."""


class BadGiven(UsageError):
    """A condition on inputs cannot be read, names no input, or contradicts the model or another condition."""


class UnknownOperator(Error):
    """A node, at `location`, has an operator that NumPy cannot compute."""

    def __init__(self, message: str, location: "Location") -> None:
        super().__init__(message)
        self.location = location


class BrokenModel(Error):
    """A model cannot be evaluated, as it breaks the rules in `diagnostics`."""

    def __init__(self, message: str, diagnostics: "tuple[Diagnostic, ...]") -> None:
        super().__init__(message)
        self.diagnostics = diagnostics


class EvaluationFailed(Error):
    """A node cannot be computed from the values of its inputs.

    `breaks_rule` is True if the values violate the specification of a scatter operator, False if NumPy cannot
    compute the node.
    """

    def __init__(self, message: str, location: "Location", *, breaks_rule: bool = False) -> None:
        super().__init__(message)
        self.location = location
        self.breaks_rule = breaks_rule


class NoInputs(Error):
    """No legal inputs were found for a model."""


class NotEditable(Error):
    """A file, or some `nodes` of it, cannot be edited safely because of an unusual form."""

    def __init__(self, message: str, nodes: Collection[object] = ()) -> None:
        super().__init__(message)
        self.nodes = nodes


class CannotWrite(Error):
    """Files cannot be written; existing files are unchanged."""


class Absent(Error):
    """A requested scheduler, machine or device is not available."""


@contextmanager
def explained(subject: object, purpose: str = "written") -> Iterator[None]:
    """Convert a system error in this block to CannotWrite: "SUBJECT cannot be written: REASON"."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CannotWrite(f"{subject} cannot be {purpose}: {reason}") from None
