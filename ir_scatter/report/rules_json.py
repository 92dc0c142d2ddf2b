"""Everything that has a code, for programs."""

from collections.abc import Sequence

from ir_scatter.explain import Entry
from ir_scatter.report.characters import as_document, dumps, fields_of


def render(entries: Sequence[Entry]) -> str:
    """Write a list; an error is a warning for the operators of `warns_for`."""
    return dumps(
        as_document(rules=[fields_of(entry, "code name severity summary warns_for") for entry in entries])
    )
