"""What validating some files gave, before it is printed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ir_scatter.core.diagnostics import Diagnostic, Severity

STDIN_NAME = "<stdin>"
"""What standard input is called."""


@dataclass(frozen=True, slots=True)
class FileResult:
    """One file that was given.

    Attributes:
        path: as the caller named it.
        format: "openvino-ir", "onnx", or None if that could not be told.
        is_readable: False if it is no model or cannot be read.
        scatter_nodes: scatter nodes by type name, those of a function counted once.
        diagnostics: what was found, in the order of the file.
        lines: the text of the lines that diagnostics stand on, by line number.
    """

    path: str
    format: str | None
    is_readable: bool
    scatter_nodes: int
    diagnostics: tuple[Diagnostic, ...]
    lines: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that one run found.

    Attributes:
        files: in the order they were named.
    """

    files: tuple[FileResult, ...]

    def diagnostics(self) -> list[Diagnostic]:
        """Return the findings of all files in order."""
        return [found for file in self.files for found in file.diagnostics]

    def count(self, severity: Severity) -> int:
        """Return how many findings have this severity."""
        return sum(found.severity is severity for found in self.diagnostics())
