"""Exceptions of ir_scatter.

Error:
    ├── UnreadableModel     a file that is no model, or one that cannot be read
    └── UsageError          the caller asked for something that does not exist

Everything else that is wrong with a model is a `Diagnostic`, not an exception.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ir_scatter.diagnostics import Location


class Error(Exception):
    """Base of every exception that this library raises on purpose."""


class UsageError(Error):
    """What the caller asked for does not exist: an unknown code, a name no model has."""


class UnreadableModel(Error):
    """A file cannot be read as a model.

    Attributes:
        defect: the name of the rule that says why, "malformed-xml".
        message: one sentence.
        location: the file, with line and column where they are known.
        is_model: False if the file is something else altogether, an XML file of another kind.
        lines: the text of the line it is about, by its number.
    """

    def __init__(self, defect: str, message: str, location: "Location", *, is_model: bool = True) -> None:
        super().__init__(f"{location.path}: {message}")
        self.defect = defect
        self.message = message
        self.location = location
        self.is_model = is_model
        self.lines: dict[int, str] = {}
