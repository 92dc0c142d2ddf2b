"""What came of findings that were run once more, for programs."""

from collections.abc import Sequence

from ir_scatter.fuzz.replay import ReplayOutcome
from ir_scatter.report.characters import as_document, dumps


def render(found: Sequence[ReplayOutcome]) -> str:
    return dumps(as_document(findings=[one._asdict() for one in found]))
