"""Rules and reasons of refusals as JSON."""

from collections.abc import Sequence

from ir_scatter.explain import Entry
from ir_scatter.report.characters import as_document, dumps, fields_of


def render(entries: Sequence[Entry]) -> str:
    """Return a list of codes; for operators in `warns_for`, a rule of severity error gives a warning."""
    return dumps(
        as_document(rules=[fields_of(entry, "code name severity summary warns_for") for entry in entries])
    )
