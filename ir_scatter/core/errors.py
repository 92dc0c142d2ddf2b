"""Exceptions of ir_scatter; everything else that is wrong with a model is a `Diagnostic`."""

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
    """What the caller asked for does not exist: an unknown code, a name no model has."""


class IllegalCase(Error):
    """Inputs or attributes of one operator break its document, as the rule of a code says, "SCT203"."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class IllegalIndex(IllegalCase):
    """An index is out of range, or negative where the document forbids it. Nothing was written.

    Attributes:
        position: where the first of `count` bad indices stands in indices.
        limits: the least and the greatest legal value there; none is legal if the dimension is empty.
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
        defect: the name of the rule that says why, "malformed-xml".
        is_model: False if the file is something else altogether, an XML file of another kind.
        span: what is wrong there, None where that is no more than the place.
        excerpts: the text around the place, by its line and column.
        format: the format it was read as, None where that is not known.
        help: how to mend it, "" for what the rule says.
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


class BadFeed(UsageError):
    """An input of a model is missing, superfluous, or of a shape or type that it does not take."""


class UnknownOperator(Error):
    """A model has a node, at `location`, that NumPy does not compute."""

    def __init__(self, message: str, location: "Location") -> None:
        super().__init__(message)
        self.location = location


class BrokenModel(Error):
    """A model is not evaluated because its operators, or the file itself, break rules: `diagnostics`."""

    def __init__(self, message: str, diagnostics: "tuple[Diagnostic, ...]") -> None:
        super().__init__(message)
        self.diagnostics = diagnostics


class EvaluationFailed(Error):
    """A node cannot be computed with the values that reach it.

    It `breaks_rule` if these are against the document of a scatter operator, not only too much for NumPy.
    """

    def __init__(self, message: str, location: "Location", *, breaks_rule: bool = False) -> None:
        super().__init__(message)
        self.location = location
        self.breaks_rule = breaks_rule


class NoInputs(Error):
    """No legal inputs were found for a model."""


class NotEditable(Error):
    """A file, or some nodes of it, are written in a way that cannot be edited safely; no nodes: the file."""

    def __init__(self, message: str, nodes: Collection[object] = ()) -> None:
        super().__init__(message)
        self.nodes = nodes


class CannotWrite(Error):
    """Files cannot be written; what was there before is still there."""


class Absent(Error):
    """What is to do the work cannot be had: a scheduler, a machine, a device of one."""


@contextmanager
def explained(subject: object, purpose: str = "written") -> Iterator[None]:
    """Say of an error of the system which file or folder cannot be written, read, made ..."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CannotWrite(f"{subject} cannot be {purpose}: {reason}") from None
